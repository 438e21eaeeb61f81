/** Ends a run with one plain line of counts, for people and machines that read only the end. */
import type { Reporter, TestModule } from "vitest/node";

export class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      for (const test of module.children.allTests()) counts[test.result().state]++;
      // A file that could not be loaded has no tests, and must not look like success.
      if (module.state() === "failed" && [...module.children.allTests()].length === 0) counts.failed++;
    }
    const { passed, failed, skipped, pending } = counts;
    const left = skipped + pending;
    process.stdout.write(`\n${passed} passed, ${failed} failed${left > 0 ? `, ${left} skipped` : ""}\n`);
  }
}
