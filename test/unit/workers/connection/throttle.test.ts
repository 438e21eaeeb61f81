/** Owns: a flood of requests costs one run an interval, and the last request is never lost. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createThrottle } from "../../../../workers/connection/throttle.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function track() {
  const startedAt = performance.now();
  const runs: number[] = [];
  const throttle = createThrottle({
    delayMs: 100,
    intervalMs: 1_000,
    task: () => runs.push(Math.round(performance.now() - startedAt)),
  });
  return { throttle, runs };
}

describe("createThrottle", () => {
  test("one request -> one run, after the delay", () => {
    const { throttle, runs } = track();
    throttle.request();
    vi.advanceTimersByTime(99);
    expect(runs).toEqual([]);
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([100]);
  });

  test("a burst -> one run", () => {
    const { throttle, runs } = track();
    for (let i = 0; i < 1_000; i++) throttle.request();
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([100]);
  });

  test("a flood of 5 s -> one run an interval, and one for the last request", () => {
    const { throttle, runs } = track();
    for (let ms = 0; ms < 5_000; ms += 10) {
      throttle.request();
      vi.advanceTimersByTime(10);
    }
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([100, 1_100, 2_100, 3_100, 4_100, 5_100]);
  });

  test("a request right after a run -> waits out the interval, and is not lost", () => {
    const { throttle, runs } = track();
    throttle.request();
    vi.advanceTimersByTime(101);
    throttle.request();
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([100, 1_100]);
  });

  test("a request within the task -> one more run", () => {
    const runs: number[] = [];
    const throttle = createThrottle({
      delayMs: 100,
      intervalMs: 1_000,
      task: () => {
        runs.push(runs.length);
        if (runs.length < 3) throttle.request();
      },
    });
    throttle.request();
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([0, 1, 2]);
  });

  test("a request long after the last run -> the delay only", () => {
    const { throttle, runs } = track();
    throttle.request();
    vi.advanceTimersByTime(5_000);
    throttle.request();
    vi.advanceTimersByTime(5_000);
    expect(runs).toEqual([100, 5_100]);
  });

  test("stopped -> no run any more, neither of what waits nor of what comes", () => {
    const { throttle, runs } = track();
    throttle.request();
    throttle.stop();
    throttle.request();
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
