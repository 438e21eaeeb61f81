/** Owns: when a worker counts as hanging; a pause of main itself does not count. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Heartbeat, startHeartbeat } from "../../../src/runtime/keep-worker.ts";

let heartbeat: Heartbeat | undefined;
beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  heartbeat?.stop();
  vi.useRealTimers();
});

function track(ask: () => Promise<unknown>) {
  const hangs: number[] = [];
  const asked: number[] = [];
  const startedAt = performance.now();
  /** Rounded to 10 ms, because callbacks behind the queue move the fake clock a little. */
  const sinceStart = (): number => Math.round((performance.now() - startedAt) / 10) * 10;
  heartbeat = startHeartbeat({
    timeoutMs: 5_000,
    ask: () => {
      asked.push(sinceStart());
      return ask();
    },
    onHang: () => hangs.push(sinceStart()),
  });
  return { asked, hangs };
}

const never = (): Promise<never> => new Promise(() => undefined);

/** Lets one tick come late, as after a suspended machine or a stalled main thread. */
async function sleepThrough(ms: number): Promise<void> {
  // Only the clock moves; then one tick runs, however many were due.
  vi.setSystemTime(Date.now() + ms);
  const now = performance.now() + ms;
  const spy = vi.spyOn(performance, "now").mockReturnValue(now);
  await vi.advanceTimersToNextTimerAsync();
  await vi.advanceTimersByTimeAsync(0);
  spy.mockRestore();
}

describe("startHeartbeat", () => {
  test("a worker that answers -> asked every 2.5 s, never hanging", async () => {
    const { asked, hangs } = track(async () => undefined);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(asked).toEqual([2_500, 5_000, 7_500, 10_000, 12_500, 15_000, 17_500, 20_000]);
    expect(hangs).toEqual([]);
  });

  test("a worker that never answers -> hanging 5 s after the question, reported once", async () => {
    const { asked, hangs } = track(never);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toEqual([2_500]);
    expect(hangs).toEqual([7_500]);
  });

  test("a worker that answers each time just within 5 s -> not hanging", async () => {
    const { hangs } = track(() => new Promise((resolve) => setTimeout(resolve, 4_900)));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(hangs).toEqual([]);
  });

  test("a question that is rejected because the worker has ended -> not hanging", async () => {
    const { hangs } = track(() => Promise.reject(new Error("gone")));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(hangs).toEqual([]);
  });

  test("an answer that waits in the queue when the time is over -> not hanging", async () => {
    let answer: (value: unknown) => void = () => undefined;
    let asked = 0;
    const { hangs } = track(() => {
      asked++;
      return asked === 1 ? new Promise((resolve) => (answer = resolve)) : Promise.resolve();
    });
    await vi.advanceTimersByTimeAsync(2_500);
    // The answer comes after the deciding tick, and before the callback that this tick put behind the queue.
    setTimeout(() => setImmediate(() => answer(undefined)), 4_999.5);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(hangs).toEqual([]);
  });

  test("main itself did nothing for a minute -> the worker gets its full time again", async () => {
    const { hangs } = track(never);
    await vi.advanceTimersByTimeAsync(3_000);
    await sleepThrough(60_000);
    expect(hangs).toEqual([]);
  });

  test("stopped -> no question and no report", async () => {
    const { asked, hangs } = track(never);
    await vi.advanceTimersByTimeAsync(2_500);
    heartbeat?.stop();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toEqual([2_500]);
    expect(hangs).toEqual([]);
  });
});
