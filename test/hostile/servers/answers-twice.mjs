// Answers each request to many wrong ids first, then twice to the right one, the second time with other words.
import { send, serve, text } from "./lib.mjs";

serve({
  "tools/call": ({ id }) => {
    // Not what a client may take for the number, such as "3": real servers answer so.
    const wrong = [-1, 0.5, 10 ** 9, {}, "__proto__", "x".repeat(100_000)];
    for (const one of wrong) send({ id: one, result: text("wrong id") });
    send({ id, result: text("right") });
    send({ id, result: text("second answer") });
    send({ id, error: { code: 1, message: "third answer" } });
  },
});
