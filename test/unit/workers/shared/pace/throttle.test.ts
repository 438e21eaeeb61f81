/** A flood of requests costs one run in each interval, and the last request is never lost. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createThrottle } from "../../../../../workers/shared/pace/pace.ts";

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

  test("a flood of 5 s -> one run in each interval, and one for the last request", () => {
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

  test("stopped -> no further run, neither for waiting nor for new requests", () => {
    const { throttle, runs } = track();
    throttle.request();
    throttle.stop();
    throttle.request();
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a task that takes longer than the interval -> runs never overlap; the last request is not lost", async () => {
    const startedAt = performance.now();
    const runs: number[] = [];
    const ends: (() => void)[] = [];
    const throttle = createThrottle({
      delayMs: 100,
      intervalMs: 1_000,
      task: () => {
        runs.push(Math.round(performance.now() - startedAt));
        return new Promise<void>((resolve) => ends.push(resolve));
      },
    });
    throttle.request();
    await vi.advanceTimersByTimeAsync(200);
    throttle.request();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(runs).toEqual([100]);
    ends[0]?.();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(runs).toEqual([100, 20_300]);
    throttle.request();
    throttle.stop();
    ends[1]?.();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(runs).toHaveLength(2);
  });
});

describe("createThrottle with an interval that grows", () => {
  function grow() {
    const startedAt = performance.now();
    const runs: number[] = [];
    const throttle = createThrottle({
      delayMs: 100,
      intervalMs: 1_000,
      longestMs: 60_000,
      task: () => runs.push(Math.round(performance.now() - startedAt)),
    });
    const flood = (ms: number, everyMs: number): void => {
      for (let passed = 0; passed < ms; passed += everyMs) {
        throttle.request();
        vi.advanceTimersByTime(everyMs);
      }
    };
    return { throttle, runs, flood };
  }
  const MINUTES = 60_000;

  test("a flood of ten minutes -> 1 s, 2, 4 ... up to 60 s between the runs", () => {
    const { runs, flood } = grow();
    flood(10 * MINUTES, 10);
    const pauses = runs.slice(1).map((at, i) => at - (runs[i] ?? 0));
    expect(pauses.slice(0, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    expect(runs.length).toBeLessThan(20);
  });

  test("a run that requests the next run each time -> the same", () => {
    const runs: number[] = [];
    const throttle = createThrottle({
      delayMs: 100,
      intervalMs: 1_000,
      longestMs: 60_000,
      task: () => {
        runs.push(performance.now());
        throttle.request();
      },
    });
    throttle.request();
    vi.advanceTimersByTime(10 * MINUTES);
    expect(runs.length).toBeLessThan(20);
  });

  test("the end of a flood -> one run for the last request, within a minute", () => {
    const { runs, flood } = grow();
    flood(5 * MINUTES, 1_000);
    const before = runs.length;
    vi.advanceTimersByTime(60_000);
    expect(runs.length).toBe(before + 1);
    vi.advanceTimersByTime(10 * MINUTES);
    expect(runs.length).toBe(before + 1);
  });

  test("quiet for as long as the last interval -> the shortest again", () => {
    const { throttle, runs, flood } = grow();
    flood(5 * MINUTES, 1_000);
    vi.advanceTimersByTime(2 * MINUTES);
    const before = runs.length;
    for (const after of [100, 1_000, 2_000]) {
      throttle.request();
      vi.advanceTimersByTime(after);
    }
    expect(runs.length).toBe(before + 3);
  });

  test("a request every fifteen seconds -> each runs at once", () => {
    const { runs, flood } = grow();
    flood(10 * MINUTES, 15_000);
    expect(runs).toHaveLength(40);
    expect(runs.slice(0, 3)).toEqual([100, 15_100, 30_100]);
  });

  test("three requests in three seconds, as from a starting server -> each runs within three seconds", () => {
    const { runs, flood } = grow();
    flood(3_000, 1_000);
    vi.advanceTimersByTime(10_000);
    expect(runs).toEqual([100, 1_100, 3_100]);
  });
});
