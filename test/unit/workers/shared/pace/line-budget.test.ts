/** A number of lines and characters in each window; further lines cost nothing and are reported once. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLineBudget } from "../../../../../workers/shared/pace/pace.ts";

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
  const write = (line: string): void =>
    budget.write(
      () => {
        composed++;
        return line;
      },
      (text) => written.push(text),
    );
  return { budget, write, written, composed: () => composed };
}

test("lines beyond the limit -> not composed, counted, reported when the window is over", () => {
  const { write, written, composed } = track();
  for (let i = 0; i < 10; i++) write(`line ${i}`);
  expect([written, composed()]).toEqual([["line 0", "line 1", "line 2"], 3]);
  vi.advanceTimersByTime(999);
  expect(written).toHaveLength(3);
  vi.advanceTimersByTime(1);
  expect(written.at(-1)).toBe("7 dropped");
});

test("characters beyond the limit -> dropped with all further lines of the window", () => {
  const { write, written, composed } = track();
  for (const line of ["x".repeat(20), "y", "z"]) write(line);
  expect([written, composed()]).toEqual([["x".repeat(20)], 2]);
});

test("the next window -> lines again, after the report of dropped lines", () => {
  const { write, written } = track();
  for (let i = 0; i < 4; i++) write(String(i));
  vi.advanceTimersByTime(5_000);
  write("late");
  expect(written).toEqual(["0", "1", "2", "1 dropped", "late"]);
});

test("nothing dropped -> no report; close -> one report at once", () => {
  const { budget, write, written } = track();
  write("a");
  budget.close();
  for (const line of ["b", "c", "d", "e"]) write(line);
  budget.close();
  vi.advanceTimersByTime(10_000);
  expect(written).toEqual(["a", "b", "c", "2 dropped"]);
});
