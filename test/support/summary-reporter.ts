/** Ends a run with one plain line of counts, for readers that see only the end of the output. */
import type { Reporter, TestModule } from "vitest/node";

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++;
      // A file that failed to load has no tests; it counts as a failure.
      if (module.state() === "failed" && [...module.children.allTests()].length === 0) counts.failed++;
    }
    const { passed, failed, skipped, pending } = counts;
    const left = skipped + pending;
    process.stdout.write(`\n${passed} passed, ${failed} failed${left > 0 ? `, ${left} skipped` : ""}\n`);
  }
}
