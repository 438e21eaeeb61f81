/** Attacks by the amount that a server over stdio writes. */
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { isGone, isShort, workerEnds } from "./seeing.ts";

const WORK = [{ tool: "work" }];

export const FLOODS: readonly Row[] = [
  {
    name: "a server that answers tools/list with 60 MiB of empty objects",
    finding: "C2",
    alone: "home",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-list.mjs", "60", "{}"),
    happened: "sent",
    watchMs: 1_000,
    act: (arena) => arena.connected(),
    check: workerEnds,
  },
  {
    name: "a server that answers a call with 60 MiB of empty objects",
    finding: "C2",
    alone: "home",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-result.mjs", "60", "{}"),
    calls: WORK,
    watchMs: 1_500,
    check: workerEnds,
  },
  {
    name: "a server that answers a call with 60 MiB of numbers as structured content",
    finding: "C2",
    alone: "home",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-result.mjs", "60", "0", "structured"),
    calls: WORK,
    watchMs: 1_500,
    check: workerEnds,
  },
  {
    name: "no attack: a server answers a call with 60 MiB of plain text, and the model gets the start and the end",
    finding: "C2",
    alone: "home",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("big-text.mjs", "60"),
    act: async (arena) => {
      const { text } = await arena.use(arena.place.server, "work");
      if (!text.includes("first words") || !text.includes("last words"))
        throw new Error(`not the result: ${text.slice(0, 300)}`);
    },
    check: isShort,
  },
  {
    name: "a server that asks without end and never reads an answer",
    anyClient: true,
    finding: "M5",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("asks-never-reads.mjs"),
    happened: "asks",
    act: async (arena) => {
      const pid = Number((await arena.place.seen()).find((line) => line.startsWith("pid "))?.slice(4));
      if (!(await arena.until(() => isGone(pid), 20_000)))
        throw new Error("the server still asks after 20 s");
    },
    check: workerEnds,
  },
  {
    name: "a server that writes to stderr without end",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-stderr.mjs"),
    calls: WORK,
  },
  {
    name: "a server that writes garbage in a line that never ends",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("garbage-without-end.mjs"),
  },
  {
    name: "a server that writes empty lines without end",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("empty-lines.mjs"),
    calls: WORK,
  },
  {
    name: "a server that sends 60,000 responses without any request",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("unasked-responses.mjs"),
    calls: WORK,
  },
  {
    name: "a server that reports 30,000 steps of progress in one call",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-progress.mjs"),
    calls: WORK,
  },
  ...[
    ["notifications/tools/list_changed", "{}"],
    ["notifications/message", '{"level":"error","data":"\\u001b]0;title\\u0007 a line"}'],
    ["notifications/resources/updated", '{"uri":"x"}'],
    ["notifications/cancelled", '{"requestId":1}'],
    ["__proto__", '{"__proto__":{"polluted":true}}'],
  ].map(
    ([method = "", params = ""]): Row => ({
      name: `a server that sends 10,000 notifications ${method}`,
      finding: "own",
      beside: false,
      checks: SERVER_CHECKS,
      server: ({ hostile }) => hostile("floods-notifications.mjs", "10000", method, params),
      happened: "sent",
    }),
  ),
  {
    name: "a server that sends a batch of 200,000 messages, an empty batch, and a batch of nested batches",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("batches.mjs"),
    happened: "sent",
  },
  {
    name: "a server that makes 1,600 requests with ids of every kind",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("asks-for-everything.mjs"),
    calls: WORK,
  },
  {
    name: "a server that is told folders, and makes 1,600 requests with ids of every kind",
    finding: "own",
    beside: false,
    checks: SERVER_CHECKS,
    server: async ({ hostile }) => ({ ...(await hostile("asks-for-everything.mjs")), roots: true }),
    calls: WORK,
  },
];
