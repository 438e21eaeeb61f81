/** Progress is passed on at once at first, then the newest of each interval. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createProgressPacer } from "../../../../../workers/shared/pace/pace.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function track() {
  const startedAt = performance.now();
  const passed: [ms: number, message: string][] = [];
  const pacer = createProgressPacer<string>(100, (message) =>
    passed.push([Math.round(performance.now() - startedAt), message]),
  );
  return { pacer, passed };
}

describe("createProgressPacer", () => {
  test("one message -> passed on at once, and only once", () => {
    const { pacer, passed } = track();
    pacer.push("a");
    expect(passed).toEqual([[0, "a"]]);
    vi.advanceTimersByTime(10_000);
    expect(passed).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("several within an interval -> the first at once, the newest at its end", () => {
    const { pacer, passed } = track();
    for (const message of ["a", "b", "c"]) pacer.push(message);
    vi.advanceTimersByTime(10_000);
    expect(passed).toEqual([
      [0, "a"],
      [100, "c"],
    ]);
  });

  test("a message every 10 ms for a second -> ten a second, each the newest, the last not lost", () => {
    const { pacer, passed } = track();
    for (let i = 0; i < 100; i++) {
      pacer.push(`${i}`);
      vi.advanceTimersByTime(10);
    }
    vi.advanceTimersByTime(10_000);
    expect(passed.map(([ms]) => ms)).toEqual(Array.from({ length: 11 }, (_, i) => i * 100));
    expect(passed.at(-1)).toEqual([1_000, "99"]);
  });

  test("a message after a pause -> at once", () => {
    const { pacer, passed } = track();
    pacer.push("a");
    vi.advanceTimersByTime(5_000);
    pacer.push("b");
    expect(passed.at(-1)).toEqual([5_000, "b"]);
  });

  test("an empty message in between -> passed on like any other", () => {
    const { pacer, passed } = track();
    pacer.push("a");
    pacer.push("");
    vi.advanceTimersByTime(100);
    expect(passed.at(-1)).toEqual([100, ""]);
  });

  test("stopped -> a waiting message is not passed on, no timer stays", () => {
    const { pacer, passed } = track();
    pacer.push("a");
    pacer.push("b");
    pacer.stop();
    vi.advanceTimersByTime(10_000);
    expect(passed).toEqual([[0, "a"]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a message after the stop, as servers may send -> not passed on, no timer stays", () => {
    const { pacer, passed } = track();
    pacer.stop();
    pacer.push("late");
    vi.advanceTimersByTime(10_000);
    expect(passed).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
