/**
 * Fetches the real Pi once, before any test; if that fails, the run ends here with the reason. Makes the folder for the
 * code that Pi transforms and compiles, which the homes of one test run share.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ensurePi } from "./pi-host.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Value for `HomeOptions.caches`. */
    piCaches: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await ensurePi();
  const caches = await mkdtemp(join(tmpdir(), "pmt-caches-"));
  project.provide("piCaches", caches);
  // A test process that is ending may still write compiled code there, which makes its folder not empty for a moment.
  return () => rm(caches, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
