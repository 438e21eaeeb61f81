/**
 * Owns: the order of the test files in a run. The slowest files start first, so that no long file runs alone at the
 * end. The files of a project follow each other: Vitest ends a test process if the next file is of another project.
 * To add a file: name it here only if it takes more than ten seconds.
 */
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/**
 * Projects one after the other, each slowest first. Files that wait for most of their time stand between files that
 * compute, so that the cores always have work. A folder stands for all of its files that have no entry of their own.
 */
const SLOWEST: readonly string[] = [
  "hostile/user",
  "hostile/catalogs",
  "hostile/messages",
  "hostile/names",
  "hostile/clone",
  "e2e/start",
  "cli/pipe",
  "e2e/ends",
  "hostile/",
  "e2e/tools",
  "e2e/live-config",
  "e2e/",
  "cli/",
  "worker/compile-cache",
  "oauth/refresh",
  "worker/respawn",
  "worker/npx",
  "worker/messages",
  "conformance/",
  "worker/stdio",
  "worker/http-hostile",
  "worker/setup",
  "worker/lifecycle",
  "worker/hostile-npx",
  "worker/modern-tasks",
  "worker/",
  "oauth/",
  "unit/workers/shared/files/lock",
];

/** The place of a file in the order; files without an entry come last. */
export function placeOf(file: string): number {
  const path = file.replaceAll("\\", "/");
  const place = SLOWEST.findIndex((part) =>
    part.endsWith("/") ? path.includes(`/test/${part}`) : path.endsWith(`/test/${part}.test.ts`),
  );
  return place === -1 ? SLOWEST.length : place;
}

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // Files of one place keep Vitest's own order: failed files first, then by their last duration.
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => placeOf(a.moduleId) - placeOf(b.moduleId));
  }
}
