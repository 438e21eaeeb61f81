/** Owns: when the time of a call is over: progress renews it, the cap does not move, and both stand still for a person. */
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { AskPauses } from "../../../../../workers/connection/asks/asks.ts";
import { CallClock } from "../../../../../workers/connection/mcp/client.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function pausable(isOpen = false) {
  const listeners = new Set<() => void>();
  const state = { isOpen };
  const pauses: AskPauses = {
    get isOpen() {
      return state.isOpen;
    },
    watch: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const set = (open: boolean): void => {
    state.isOpen = open;
    for (const listener of listeners) listener();
  };
  return { pauses, set, listeners };
}

const start = (pauses?: AskPauses, caller = new AbortController().signal): CallClock =>
  new CallClock({ caller, limitMs: 1_000, capMs: 2_500, pauses, reason: () => "late" });

test("the caller gives up, before or meanwhile -> it aborts with the caller's reason", () => {
  const caller = new AbortController();
  const clock = start(undefined, caller.signal);
  expect(clock.signal.aborted).toBe(false);
  caller.abort("mine");
  vi.advanceTimersByTime(5_000);
  expect([clock.signal.reason, start(undefined, caller.signal).signal.reason]).toEqual(["mine", "mine"]);
});

test("stopped -> the caller's signal is left alone, and does nothing to it", () => {
  const caller = new AbortController();
  const clock = start(undefined, caller.signal);
  expect(getEventListeners(caller.signal, "abort")).toHaveLength(1);
  clock.stop();
  expect(getEventListeners(caller.signal, "abort")).toEqual([]);
  caller.abort("mine");
  expect(clock.signal.aborted).toBe(false);
});

test("without an answer -> it expires with the reason", () => {
  const clock = start();
  vi.advanceTimersByTime(999);
  expect(clock.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(clock.signal.reason).toBe("late");
});

test("progress renews the limit, but not the cap", () => {
  const clock = start();
  for (const _ of [1, 2, 3]) {
    vi.advanceTimersByTime(800);
    clock.renew();
  }
  vi.advanceTimersByTime(99);
  expect(clock.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(clock.signal.aborted).toBe(true);
});

test("a question is open -> the limit and the cap stand still, however long it takes", () => {
  const { pauses, set } = pausable();
  const clock = start(pauses);
  vi.advanceTimersByTime(600);
  set(true);
  set(true);
  vi.advanceTimersByTime(600_000);
  clock.renew();
  vi.advanceTimersByTime(600_000);
  set(false);
  set(false);
  vi.advanceTimersByTime(999);
  expect(clock.signal.aborted).toBe(false);
  clock.renew();
  vi.advanceTimersByTime(900);
  expect(clock.signal.aborted).toBe(false);
  // The cap: 600 ms before the question, 1,900 ms after it.
  vi.advanceTimersByTime(1);
  expect(clock.signal.aborted).toBe(true);
});

test("a call that begins while a question is open -> it waits, too", () => {
  const { pauses, set } = pausable(true);
  const clock = start(pauses);
  vi.advanceTimersByTime(5_000);
  expect(clock.signal.aborted).toBe(false);
  set(false);
  vi.advanceTimersByTime(1_000);
  expect(clock.signal.aborted).toBe(true);
});

test("stopped -> it never expires, and leaves no timer and no listener", () => {
  const { pauses, listeners } = pausable();
  const clock = start(pauses);
  clock.stop();
  clock.stop();
  vi.advanceTimersByTime(10_000);
  expect([clock.signal.aborted, vi.getTimerCount(), listeners.size]).toEqual([false, 0, 0]);
});
