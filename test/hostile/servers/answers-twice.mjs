// Answers a call first with many wrong ids, then three times with the right id; only the first answer counts.
import { send, serve, text } from "./lib.mjs";

serve({
  "tools/call": ({ id }) => {
    // The text "3" for the id 3 is missing here: real servers answer so, and a client may accept it.
    const wrong = [-1, 0.5, 10 ** 9, {}, "__proto__", "x".repeat(100_000)];
    for (const one of wrong) send({ id: one, result: text("wrong id") });
    send({ id, result: text("right") });
    send({ id, result: text("second answer") });
    send({ id, error: { code: 1, message: "third answer" } });
  },
});
