/** Owns: waiting for a promise, but no longer than a given time. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { settledWithin } from "../../../../../workers/shared/pace/abort.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test.each<[string, () => Promise<unknown>, boolean]>([
  ["resolves before", () => after(99), true],
  ["rejects before", () => after(99).then(() => Promise.reject(new Error("no"))), true],
  ["resolves later", () => after(101), false],
  ["rejects later", () => after(101).then(() => Promise.reject(new Error("no"))), false],
  ["never settles", () => new Promise(() => undefined), false],
])("a promise that %s -> %3$s", async (_name, make, expected) => {
  const waiting = settledWithin(make(), 100);
  await vi.advanceTimersByTimeAsync(200);
  expect(await waiting).toBe(expected);
});

test("a promise that has settled -> true at once, and no timer is left", async () => {
  expect(await settledWithin(Promise.resolve(), 60_000)).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});
