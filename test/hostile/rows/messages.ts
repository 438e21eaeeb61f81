/** Attacks by what a server over stdio writes: sizes, shapes and order of its messages. */
import { type Row, SERVER_CHECKS } from "../support/row.ts";

export const MESSAGES: readonly Row[] = [
  {
    name: "no attack at all: a server like any other",
    finding: "own",
    checks: SERVER_CHECKS,
    server: ({ hostile }) => hostile("healthy.mjs"),
    calls: [{ tool: "echo", args: { text: "x" } }],
  },
  {
    name: "no attack at all, from the start",
    finding: "own",
    checks: SERVER_CHECKS,
    alone: true,
    server: ({ hostile }) => hostile("healthy.mjs"),
    calls: [{ tool: "echo", args: { text: "x" } }],
  },
  {
    name: "tools/list of 60 MiB that is 20 million empty objects",
    finding: "C2",
    checks: SERVER_CHECKS,
    alone: true,
    server: ({ hostile }) => hostile("floods-list.mjs", "60", "{}"),
    happened: "sent",
  },
];
