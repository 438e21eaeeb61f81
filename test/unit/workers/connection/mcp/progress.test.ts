/** Owns: what a progress notification says, and how often progress is passed on to main. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { CallProgress } from "../../../../../src/shared/protocol/calls.ts";
import { readProgress } from "../../../../../workers/connection/mcp/client.ts";
import { createRedactor } from "../../../../../workers/connection/secrets/redact.ts";
import { createProgressPacer } from "../../../../../workers/shared/pace/pace.ts";

test.each<[Parameters<typeof readProgress>[0], CallProgress]>([
  [{ progress: 3 }, { message: "3", progress: 3 }],
  [
    { progress: 3, total: 9 },
    { message: "3 of 9", progress: 3, total: 9 },
  ],
  [
    { progress: 3, total: 0 },
    { message: "3", progress: 3 },
  ],
  [
    { progress: 3, total: 9, message: "reading" },
    { message: "reading", progress: 3, total: 9 },
  ],
  [{ progress: "x", message: "" }, { message: "?" }],
  [
    { progress: 1, message: `with s3cr3t-token, ${"x".repeat(600)}` },
    { message: `with [redacted], ${"x".repeat(483)}`, progress: 1 },
  ],
  [
    { progress: 1, message: `${"x".repeat(495)}s3cr3t-token` },
    { message: `${"x".repeat(495)}[reda`, progress: 1 },
  ],
])("%j -> %j", (params, expected) => {
  expect(readProgress(params, createRedactor({ values: ["s3cr3t-token"], named: [] }))).toEqual(expected);
});

test("the first at once, then the latest of each interval, and nothing after the end", async () => {
  const sent: string[] = [];
  const gate = createProgressPacer<CallProgress>(20, ({ message }) => sent.push(message));
  for (const message of ["a", "b", "c"]) gate.push({ message });
  expect(sent).toEqual(["a"]);
  await expect.poll(() => sent).toEqual(["a", "c"]);
  gate.push({ message: "d" });
  gate.stop();
  await sleep(60);
  // The clock decides whether the interval was over at "d". Nothing that was held back is passed on after the end.
  expect(sent.filter((message) => message !== "d")).toEqual(["a", "c"]);
});
