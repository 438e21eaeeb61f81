/** Progress: what a notification says, and how often main hears of it. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { CallProgress } from "../../../src/protocol/types.ts";
import { createProgressPacer } from "../../../workers/connection/progress.ts";
import { readProgress } from "../../../workers/connection/read-progress.ts";

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
  const gate = createProgressPacer<CallProgress>(20, ({ message }) => sent.push(message));
  for (const message of ["a", "b", "c"]) gate.tell({ message });
  expect(sent).toEqual(["a"]);
  await expect.poll(() => sent).toEqual(["a", "c"]);
  gate.tell({ message: "d" });
  gate.stop();
  await sleep(60);
  // Whether "d" found the interval over decides the clock; nothing held back comes after the end.
  expect(sent.filter((message) => message !== "d")).toEqual(["a", "c"]);
});
