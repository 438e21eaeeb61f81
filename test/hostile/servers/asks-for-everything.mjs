// Makes requests with ids of every kind, also with ids of the client's own requests, and reads the answers:
// `asks-for-everything.mjs 200` makes 200 rounds.
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
const IDS = [0, 1, 2, 3, -1, 1.5, "1", "", "__proto__", null];
const ROUNDS = Number(process.argv[2]);
/** The id is long in these rounds only, since long ids in every round would take seconds in the pipe alone. */
const LONG_ROUNDS = [10, 100];
const idOf = (round) => (LONG_ROUNDS.includes(round) ? "x".repeat(600_000) : IDS[round % IDS.length]);

serve();
for (let round = 0; round < ROUNDS; round++)
  for (const method of METHODS)
    send({ id: idOf(round), method, params: { url: "http://127.0.0.1:1/", messages: [] } });
seen("asked");
