/** Owns: the pause after work that a stream brings again and again. */
import { expect, test } from "vitest";
import { equalPause } from "../../../../../workers/shared/pace/equal-pause.ts";

test("work took a while -> other work has its turn first, and the pause is no longer than the work, nor than 25 ms", async () => {
  const times: number[] = [];
  for (const tookMs of [1, 10, 60_000]) {
    let others = 0;
    const other = setInterval(() => others++, 0);
    const before = performance.now();
    await equalPause(before - tookMs);
    clearInterval(other);
    times.push(performance.now() - before);
    expect(others).toBeGreaterThan(0);
  }
  // The upper ends depend on the machine.
  expect(times[1]).toBeGreaterThanOrEqual(9);
  expect(times[2]).toBeGreaterThanOrEqual(24);
});
