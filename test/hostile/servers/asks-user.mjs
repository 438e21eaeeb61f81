// A call asks the user what the file in the first argument holds, as often as the second argument says, all at once or,
// with `again` as third argument, each one after the answer to the one before. Answers the call after the last one. With
// `talk` as third argument the server talks without a pause while its questions are open, 3,000 messages as often as the
// fourth argument says. Params with `messages` are a prompt for the model, which it asks in the user's place.
import { readFileSync } from "node:fs";
import { seen, send, serve, text } from "./lib.mjs";

const [file, times = "1", how = "at-once", talks = "0"] = process.argv.slice(2);
const params = JSON.parse(readFileSync(file, "utf8"));
const most = Number(times);
let asked = 0;
let answered = 0;
let call;
const TALK = ["notifications/message", "notifications/tools/list_changed", "notifications/progress"].map(
  (method) =>
    JSON.stringify({
      jsonrpc: "2.0",
      method,
      params: { level: "info", data: "x".repeat(200), progressToken: 2, progress: 1 },
    }),
);
function talk(left) {
  if (left <= 0) seen("talked");
  else process.stdout.write(`${TALK.join("\n")}\n`.repeat(1_000), () => talk(left - 1));
}
const method = params?.messages === undefined ? "elicitation/create" : "sampling/createMessage";
const ask = () => send({ id: `ask-${asked++}`, method, params });

serve({
  "tools/call": ({ id }) => {
    call = id;
    asked = 0;
    answered = 0;
    if (how === "again") ask();
    else for (let at = 0; at < most; at++) ask();
    seen("asked");
    if (how === "talk") talk(Number(talks));
    return undefined;
  },
  // An answer to a request of this server has no method.
  undefined: () => undefined,
});
process.stdin.on("data", (chunk) => {
  for (const line of String(chunk).split("\n")) {
    if (!line.includes('"ask-')) continue;
    seen(`answer ${/"action":"(\w+)"/.exec(line)?.[1] ?? /"code":(-?\d+)/.exec(line)?.[1]}`);
    answered++;
    if (answered === most) send({ id: call, result: text("all answered") });
    else if (how === "again") ask();
  }
});
