/** Attacks by the amount that a server over stdio writes. */
import { family } from "../../support/long.ts";
import { type Row, SERVER_CHECKS } from "../support/row.ts";
import { failsForValues, isGone, isShort, refusesValues, workerEnds } from "./seeing.ts";
import { besideIfPaused, besideIfSmall, besideOrHome, PAUSE_MS, shown, sized } from "./sizes.ts";

const WORK = [{ tool: "work" }];
/** More values than `LIMITS.messageValues`. */
const LIST_MIB = sized(6, 60);
/** Longer than `LIMITS.unaskedBytes`, which does not count for an answer. */
const TEXT_MIB = sized(17, 60);
/** Many times what main, the log and the model's notices may get. */
const RESPONSES = sized(10_000, 60_000);
const STEPS = sized(6_000, 30_000);
const NOTIFICATIONS = sized(3_000, 10_000);
/** More than `LIMITS.serverRequestsOpen`, with some long ids: their answers have more than `LIMITS.unsentReplyBytes`. */
const REQUEST_ROUNDS = sized(140, 200);
const REQUESTS = shown(REQUEST_ROUNDS * 8);

export const FLOODS: readonly Row[] = [
  {
    name: `a server that answers tools/list with ${LIST_MIB} MiB of empty objects`,
    finding: "C2",
    ...besideOrHome,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-list.mjs", `${LIST_MIB}`, "{}"),
    happened: "sent",
    watchMs: sized(0, 1_000),
    act: (arena) => arena.connected(),
    check: async (arena) => [...workerEnds(arena), ...(await failsForValues(arena))],
  },
  ...family([
    { what: "empty objects", args: ["{}"] },
    { what: "numbers as structured content", args: ["0", "structured"] },
  ]).map(
    ({ what, args }): Row => ({
      name: `a server that answers a call with ${LIST_MIB} MiB of ${what}`,
      finding: "C2",
      ...besideOrHome,
      checks: SERVER_CHECKS,
      server: ({ hostile }) => hostile("floods-result.mjs", `${LIST_MIB}`, ...args),
      calls: WORK,
      watchMs: 1_500,
      check: (arena) => [...workerEnds(arena), ...refusesValues(arena)],
    }),
  ),
  {
    name: `no attack: a server answers a call with ${TEXT_MIB} MiB of plain text, and the model gets the start and the end`,
    finding: "C2",
    ...besideOrHome,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("big-text.mjs", `${TEXT_MIB}`),
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
    ...besideIfPaused,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-stderr.mjs", `${PAUSE_MS}`),
    calls: WORK,
  },
  {
    name: "a server that writes garbage in a line that never ends",
    finding: "own",
    checks: SERVER_CHECKS,
    // The client ends it after `LIMITS.messageBytes`.
    server: ({ hostile }) => hostile("garbage-without-end.mjs"),
  },
  {
    name: `a server that sends ${shown(RESPONSES)} responses without any request`,
    finding: "own",
    ...besideIfSmall,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("unasked-responses.mjs", `${RESPONSES}`),
    calls: WORK,
  },
  {
    name: `a server that reports ${shown(STEPS)} steps of progress in one call`,
    finding: "own",
    ...besideIfSmall,
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("floods-progress.mjs", `${STEPS}`),
    calls: WORK,
    check: ({ rpc, place }) => {
      const told = rpc.events.filter(
        ({ type, toolName }) => type === "tool_execution_update" && toolName === `${place.server}__work`,
      ).length;
      return told > STEPS / 10 ? [`main was told ${told} steps`] : [];
    },
  },
  ...[
    ["notifications/tools/list_changed", "{}"],
    ["notifications/message", '{"level":"error","data":"\\u001b]0;title\\u0007 a line"}'],
    // Nobody asked for these.
    ...family([
      ["__proto__", '{"__proto__":{"polluted":true}}'],
      ["notifications/resources/updated", '{"uri":"x"}'],
      ["notifications/cancelled", '{"requestId":1}'],
    ]),
  ].map(
    ([method = "", params = ""]): Row => ({
      name: `a server that sends ${shown(NOTIFICATIONS)} notifications ${method}`,
      finding: "own",
      ...besideIfSmall,
      checks: SERVER_CHECKS,
      server: ({ hostile }) => hostile("floods-notifications.mjs", `${NOTIFICATIONS}`, method, params),
      happened: "sent",
    }),
  ),
  {
    name: "a server that sends a batch of 200,000 messages, an empty batch, and a batch of nested batches",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("batches.mjs"),
    happened: "sent",
  },
  ...[
    { who: "a server that is told folders, and makes", entry: { roots: true } },
    { who: "a server that makes", entry: {} },
  ].map(
    ({ who, entry }): Row => ({
      name: `${who} ${REQUESTS} requests with ids of every kind`,
      finding: "own",
      ...besideIfSmall,
      checks: SERVER_CHECKS,
      server: ({ hostile }) => ({ ...hostile("asks-for-everything.mjs", `${REQUEST_ROUNDS}`), ...entry }),
      calls: WORK,
    }),
  ),
];
