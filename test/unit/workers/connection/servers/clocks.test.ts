/** Owns: the clocks beside a connection: idle time counts from the last use, a health check finds a sick server. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createIdleClock, startHealthCheck } from "../../../../../workers/connection/servers/clocks.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function track(timeoutMs = 1_000) {
  const expired: number[] = [];
  const startedAt = performance.now();
  const clock = createIdleClock({
    timeoutMs: () => timeoutMs,
    onExpired: () => expired.push(Math.round(performance.now() - startedAt)),
  });
  return { clock, expired };
}

describe("createIdleClock", () => {
  test("a connection that nothing uses -> expired after the idle time, once", () => {
    const { clock, expired } = track();
    clock.start();
    vi.advanceTimersByTime(10_000);
    expect(expired).toEqual([1_000]);
  });

  test("not open -> never expires, even after a use", () => {
    const { clock, expired } = track();
    clock.begin();
    clock.end();
    vi.advanceTimersByTime(10_000);
    expect(expired).toEqual([]);
  });

  test("a use longer than the idle time -> counts from its end", () => {
    const { clock, expired } = track();
    clock.start();
    clock.begin();
    vi.advanceTimersByTime(5_000);
    expect(expired).toEqual([]);
    clock.end();
    vi.advanceTimersByTime(10_000);
    expect(expired).toEqual([6_000]);
  });

  test("two uses that overlap -> counts from the end of the last", () => {
    const { clock, expired } = track();
    clock.start();
    clock.begin();
    clock.begin();
    vi.advanceTimersByTime(500);
    clock.end();
    vi.advanceTimersByTime(2_000);
    expect(expired).toEqual([]);
    clock.end();
    vi.advanceTimersByTime(10_000);
    expect(expired).toEqual([3_500]);
  });

  test("opened during a use, as a lazy connect is -> counts from its end", () => {
    const { clock, expired } = track();
    clock.begin();
    clock.start();
    vi.advanceTimersByTime(5_000);
    expect(expired).toEqual([]);
    clock.end();
    vi.advanceTimersByTime(1_000);
    expect(expired).toEqual([6_000]);
  });

  test("idle time 0 -> never", () => {
    const { clock, expired } = track(0);
    clock.start();
    vi.advanceTimersByTime(100_000_000);
    expect(expired).toEqual([]);
  });

  test("an idle time longer than a timer can hold -> does not expire at once", () => {
    const { clock, expired } = track(60 * 24 * 60 * 60 * 1_000);
    clock.start();
    vi.advanceTimersByTime(60_000);
    expect(expired).toEqual([]);
  });

  test("stopped -> does not expire", () => {
    const { clock, expired } = track();
    clock.start();
    clock.stop();
    vi.advanceTimersByTime(10_000);
    expect(expired).toEqual([]);
  });

  test("whenUnused -> at once without a use, else when the last one ends", () => {
    const { clock } = track();
    const done: string[] = [];
    clock.whenUnused(() => done.push("at once"));
    clock.begin();
    clock.begin();
    clock.whenUnused(() => done.push("later"));
    clock.end();
    expect(done).toEqual(["at once"]);
    clock.end();
    expect(done).toEqual(["at once", "later"]);
  });
});

describe("startHealthCheck", () => {
  test("a server that answers -> asked every 30 s with 10 s to answer, never sick", async () => {
    const asked: number[] = [];
    const sick: unknown[] = [];
    const stop = startHealthCheck(
      async (timeoutMs) => void asked.push(timeoutMs),
      (error) => sick.push(error),
    );
    await vi.advanceTimersByTimeAsync(90_000);
    stop();
    await vi.advanceTimersByTimeAsync(90_000);
    expect(asked).toEqual([10_000, 10_000, 10_000]);
    expect(sick).toEqual([]);
  });

  test("a server that does not answer -> sick, with the reason", async () => {
    const sick: unknown[] = [];
    const stop = startHealthCheck(
      () => Promise.reject(new Error("no answer")),
      (error) => sick.push(error),
    );
    await vi.advanceTimersByTimeAsync(30_000);
    stop();
    expect(sick).toEqual([new Error("no answer")]);
  });
});
