/** Owns: waiting for a promise until a signal fires, without a rejection that nobody handles. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { abortable } from "../../../../../workers/shared/pace/abort.ts";

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
