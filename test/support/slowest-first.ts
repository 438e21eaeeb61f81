/**
 * Owns: the order of the test files in a run. The slowest begin, so that no long file is alone at the end.
 * To add a file: only if it takes more than ten seconds.
 */
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** Slowest first. Folders stand for all of their other files. */
const SLOWEST: readonly string[] = [
  "hostile/mutations",
  "hostile/",
  "e2e/live-config",
  "e2e/ends",
  "e2e/start",
  "e2e/",
  "worker/lifecycle",
  "worker/respawn",
  "worker/stdio",
  "worker/npx",
  "worker/http-hostile",
  "worker/",
  "unit/workers/shared/files/lock",
];

/** The place of a file in the order; files that nothing names come last. */
export function placeOf(file: string): number {
  const path = file.replaceAll("\\", "/");
  const place = SLOWEST.findIndex((part) =>
    part.endsWith("/") ? path.includes(`/test/${part}`) : path.endsWith(`/test/${part}.test.ts`),
  );
  return place === -1 ? SLOWEST.length : place;
}

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // Vitest's own order stays within one place: what failed last time, then by the time it took.
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => placeOf(a.moduleId) - placeOf(b.moduleId));
  }
}
