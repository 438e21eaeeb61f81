// Makes requests of its own with ids of every kind, also those of the client's requests, and reads the answers.
import { seen, send, serve } from "./lib.mjs";

const METHODS = [
  "sampling/createMessage",
  "elicitation/create",
  "roots/list",
  "tools/call",
  "ping",
  "__proto__",
  "constructor",
  "",
];
const IDS = [0, 1, 2, 3, -1, 1.5, "1", "", "__proto__", null, "x".repeat(1_000_000)];
serve();
for (let i = 0; i < 200; i++)
  for (const method of METHODS)
    send({ id: IDS[i % IDS.length], method, params: { url: "http://127.0.0.1:1/", messages: [] } });
seen("asked");
