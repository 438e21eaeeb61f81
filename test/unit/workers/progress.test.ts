/** Progress: what a notification says, and how often main hears of it. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { CallProgress } from "../../../src/protocol/types.ts";
import { createProgressGate, readProgress } from "../../../workers/connection/progress.ts";

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
])("%j -> %j", (params, expected) => {
  expect(readProgress(params)).toEqual(expected);
});

test("the first at once, then the latest of each span, and nothing after the end", async () => {
  const sent: string[] = [];
  const gate = createProgressGate(({ message }) => sent.push(message), 20);
  for (const message of ["a", "b", "c"]) gate.report({ message });
  expect(sent).toEqual(["a"]);
  await expect.poll(() => sent).toEqual(["a", "c"]);
  gate.report({ message: "d" });
  gate.end();
  await sleep(60);
  expect(sent.filter((message) => message !== "d")).toEqual(["a", "c"]);
});
