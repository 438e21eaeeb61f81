/** Ends a run with one plain line of counts, for readers that see only the end of the output. */
import type { Reporter, TestModule } from "vitest/node";
import { ALL_ROWS, THOROUGH } from "./long.ts";

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    let left = 0;
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "skipped" && !ALL_ROWS && test.tags.includes(THOROUGH)) left++;
        else counts[state]++;
      }
      // A file that failed to load has no tests; it counts as a failure.
      if (module.state() === "failed" && [...module.children.allTests()].length === 0) counts.failed++;
    }
    const parts = [`${counts.passed} passed`, `${counts.failed} failed`];
    const skipped = counts.skipped + counts.pending;
    if (skipped > 0) parts.push(`${skipped} skipped`);
    if (left > 0) parts.push(`${left} left to ALL_ROWS=1`);
    process.stdout.write(`\n${parts.join(", ")}\n`);
  }
}
