/**
 * Fetches the real Pi once, before any test: a run that cannot have it fails here, with the reason. Makes the folder
 * of what Pi transforms and compiles, which the homes of one test run share.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ensurePi } from "./pi-host.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** For `HomeOptions.caches`. */
    piCaches: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await ensurePi();
  const caches = await mkdtemp(join(tmpdir(), "pmt-caches-"));
  project.provide("piCaches", caches);
  return () => rm(caches, { recursive: true, force: true });
}
