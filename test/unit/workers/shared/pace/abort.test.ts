/** Waiting that ends: with an abort, after a time, and without a rejection that nobody handles. */
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { abortable, settledWithin } from "../../../../../workers/shared/pace/abort.ts";

const CANCELLED = { code: "cancelled", message: "The work was cancelled." };

/** The rejections that nobody handles from now on. In a worker each one would end the worker. */
function unhandled(): unknown[] {
  const found: unknown[] = [];
  const others = process.listeners("unhandledRejection");
  const take = (reason: unknown): void => void found.push(reason);
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", take);
  onTestFinished(() => {
    process.off("unhandledRejection", take);
    for (const listener of others) process.on("unhandledRejection", listener);
  });
  return found;
}

test("the promise settles first -> its value or its error", async () => {
  const { signal } = new AbortController();
  expect(await abortable(Promise.resolve(1), signal, "The work")).toBe(1);
  await expect(abortable(Promise.reject(new Error("no")), signal, "The work")).rejects.toThrow("no");
});

test("the signal fires first, and the promise rejects later -> cancelled, and no rejection is unhandled", async () => {
  const found = unhandled();
  const { promise, reject } = Promise.withResolvers<void>();
  const given = new AbortController();
  const waiting = abortable(promise, given.signal, "The work");
  given.abort();
  await expect(waiting).rejects.toMatchObject(CANCELLED);
  reject(new Error("late"));
  await turn();
  expect(found).toEqual([]);
});

test("the signal has fired before, and the promise rejects -> cancelled, and no rejection is unhandled", async () => {
  const found = unhandled();
  const { promise, reject } = Promise.withResolvers<void>();
  await expect(abortable(promise, AbortSignal.abort(), "The work")).rejects.toMatchObject(CANCELLED);
  reject(new Error("late"));
  await turn();
  expect(found).toEqual([]);
});

describe("settledWithin", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const passing = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

  test.each<[string, () => Promise<unknown>, boolean]>([
    ["resolves before", () => passing(99), true],
    ["rejects before", () => passing(99).then(() => Promise.reject(new Error("no"))), true],
    ["resolves later", () => passing(101), false],
    ["rejects later", () => passing(101).then(() => Promise.reject(new Error("no"))), false],
    ["never settles", () => new Promise(() => undefined), false],
  ])("a promise that %s -> $2", async (_name, make, expected) => {
    const waiting = settledWithin(make(), 100);
    await vi.advanceTimersByTimeAsync(200);
    expect(await waiting).toBe(expected);
  });

  test("a promise that has settled -> true at once, and no timer is left", async () => {
    expect(await settledWithin(Promise.resolve(), 60_000)).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });
});
