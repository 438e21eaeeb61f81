// Lists the tools of a file and changes the first tool's description every 200 ms: `changes-list.mjs /path`.
import { readFileSync } from "node:fs";
import { seen, send, serve, text } from "./lib.mjs";

const tools = JSON.parse(readFileSync(process.argv[2], "utf8"));
const CHANGES = 3;
let count = 0;
let isTold = false;
serve({
  "tools/list": () => {
    // A client may skip changes, so the record needs several changes before a list.
    if (count >= CHANGES && !isTold) {
      isTold = true;
      seen("changed");
    }
    return { tools: tools.map((one, at) => (at === 0 ? { ...one, description: `Version ${count}.` } : one)) };
  },
  "tools/call": () => text("done"),
});
setInterval(() => {
  count++;
  send({ method: "notifications/tools/list_changed" });
}, 200);
