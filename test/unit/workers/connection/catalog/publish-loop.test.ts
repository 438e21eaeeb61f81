/** Owns: when publications run: gathered, one at a time, one more for what changed meanwhile. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PublishLoop } from "../../../../../workers/connection/catalog/publish-loop.ts";
import { settle } from "../servers/support.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Publications that the test ends, in order. */
function open() {
  const running: PromiseWithResolvers<void>[] = [];
  let most = 0;
  let now = 0;
  const loop = new PublishLoop({
    delayMs: 100,
    publish: async () => {
      const one = Promise.withResolvers<void>();
      running.push(one);
      most = Math.max(most, ++now);
      await one.promise.finally(() => now--);
    },
  });
  const end = async (index: number): Promise<void> => {
    running[index]?.resolve();
    await settle();
  };
  return { loop, count: () => running.length, mostAtATime: () => most, end };
}

/** Whether the promise has settled. */
function watch(promise: Promise<void>): { settled: boolean } {
  const state = { settled: false };
  void promise.then(() => {
    state.settled = true;
  });
  return state;
}

describe("PublishLoop", () => {
  test("a burst of changes -> one publication, after the delay from the first", async () => {
    const { loop, count } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(60);
    loop.request();
    await vi.advanceTimersByTimeAsync(39);
    expect(count()).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect([count(), loop.isRunning]).toEqual([1, true]);
  });

  test("changes while one runs -> one more when it has ended, never two at a time", async () => {
    const { loop, count, end, mostAtATime } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(100);
    for (let i = 0; i < 3; i++) {
      loop.request();
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(count()).toBe(1);
    await end(0);
    expect(count()).toBe(2);
    await end(1);
    expect([count(), loop.isRunning, mostAtATime()]).toEqual([2, false, 1]);
  });

  test("flush -> at once, without the delay; nothing requested -> settles at once", async () => {
    const { loop, count, end } = open();
    await loop.flush();
    loop.request();
    const flushed = watch(loop.flush());
    expect(count()).toBe(1);
    await end(0);
    expect(flushed.settled).toBe(true);
  });

  test("flush while one runs that began before the change -> waits for the next one", async () => {
    const { loop, end } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(100);
    loop.request();
    const flushed = watch(loop.flush());
    await end(0);
    expect(flushed.settled).toBe(false);
    await end(1);
    expect(flushed.settled).toBe(true);
  });

  test("changes after the flush was asked for -> not waited for", async () => {
    const { loop, end, count } = open();
    loop.request();
    const flushed = watch(loop.flush());
    loop.request();
    await vi.advanceTimersByTimeAsync(100);
    await end(0);
    expect([flushed.settled, count()]).toEqual([true, 2]);
  });

  test.each([
    [true, 1],
    [false, 0],
  ])("finish, what waits is worth it: %s -> %i publications", async (isWorthIt, publications) => {
    const { loop, count, end } = open();
    loop.request();
    const finished = watch(loop.finish(isWorthIt));
    await end(0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([finished.settled, count()]).toEqual([true, publications]);
  });

  test("finish while one runs -> settles when it has ended", async () => {
    const { loop, end } = open();
    loop.request();
    await vi.advanceTimersByTimeAsync(100);
    const finished = watch(loop.finish(true));
    await settle();
    expect(finished.settled).toBe(false);
    await end(0);
    expect(finished.settled).toBe(true);
  });
});
