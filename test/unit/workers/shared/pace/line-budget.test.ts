/** Owns: so many lines and characters a window; what is beyond costs nothing and is told once. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLineBudget } from "../../../../../workers/shared/pace/line-budget.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function track() {
  const written: string[] = [];
  let composed = 0;
  const budget = createLineBudget({ lines: 3, chars: 20, windowMs: 1_000 }, (count) =>
    written.push(`${count} dropped`),
  );
  const offer = (line: string): void =>
    budget.offer(
      () => {
        composed++;
        return line;
      },
      (text) => written.push(text),
    );
  return { budget, offer, written, composed: () => composed };
}

test("lines beyond the limit -> not composed, counted, told when the window is over", () => {
  const { offer, written, composed } = track();
  for (let i = 0; i < 10; i++) offer(`line ${i}`);
  expect([written, composed()]).toEqual([["line 0", "line 1", "line 2"], 3]);
  vi.advanceTimersByTime(999);
  expect(written).toHaveLength(3);
  vi.advanceTimersByTime(1);
  expect(written.at(-1)).toBe("7 dropped");
});

test("characters beyond the limit -> dropped with all that follows in the window", () => {
  const { offer, written, composed } = track();
  for (const line of ["x".repeat(20), "y", "z"]) offer(line);
  expect([written, composed()]).toEqual([["x".repeat(20)], 2]);
});

test("the next window -> lines again, after what was dropped", () => {
  const { offer, written } = track();
  for (let i = 0; i < 4; i++) offer(String(i));
  vi.advanceTimersByTime(5_000);
  offer("late");
  expect(written).toEqual(["0", "1", "2", "1 dropped", "late"]);
});

test("nothing dropped -> nothing told; close -> told at once, and once", () => {
  const { budget, offer, written } = track();
  offer("a");
  budget.close();
  for (const line of ["b", "c", "d", "e"]) offer(line);
  budget.close();
  vi.advanceTimersByTime(10_000);
  expect(written).toEqual(["a", "b", "c", "2 dropped"]);
});
