// Lists the tools of a file and changes the first tool's description every 200 ms: `changes-list.mjs /path 15`. Once a list
// was asked for after several changes and a tool was called, the changes end after so many more.
import { readFileSync } from "node:fs";
import { seen, send, serve, text } from "./lib.mjs";

const [first, ...others] = JSON.parse(readFileSync(process.argv[2], "utf8"));
/** The rest of each answer, made once: making it costs as much as reading it. */
const rest = `${JSON.stringify(others).slice(1)}}}`;
const CHANGES = 3;
let count = 0;
let isTold = false;
let isCalled = false;
let left = Number(process.argv[3]);
serve({
  "tools/list": ({ id }) => {
    // A client may skip changes, so the record needs several changes before a list.
    if (count >= CHANGES && !isTold) {
      isTold = true;
      seen("changed");
    }
    const changed = JSON.stringify({ ...first, description: `Version ${count}.` });
    process.stdout.write(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":[${changed},${rest}\n`,
    );
    return undefined;
  },
  "tools/call": () => {
    isCalled = true;
    return text("done");
  },
});
const timer = setInterval(() => {
  count++;
  if (isTold && isCalled && left-- === 0) clearInterval(timer);
  send({ method: "notifications/tools/list_changed" });
}, 200);
