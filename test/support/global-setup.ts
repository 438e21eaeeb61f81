/**
 * Fetches the real Pi once, before any test; if that fails, the run ends here with the reason. Makes the folder for the
 * code that Pi transforms and compiles, which the homes of one test run share.
 */
import { mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { ensurePi } from "./pi-host.ts";
import { makeTempFolder } from "./temp-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Value for `HomeOptions.caches`. */
    piCaches: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await ensurePi();
  const caches = await makeTempFolder("pmt-caches");
  await symlink(await transforms(), join(caches, "jiti"), "junction");
  project.provide("piCaches", caches);
  // A test process that is ending may still write compiled code there, which makes its folder not empty for a moment.
  return () => rm(caches, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

/** More than some hundred versions of all sources. */
const TRANSFORMS_KEPT = 20_000;

/**
 * The folder of the transforms of raw TypeScript. Their names tell their content, so it stays for later runs: to
 * transform all sources takes three seconds of processor time.
 */
async function transforms(): Promise<string> {
  const folder = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "pi-jiti");
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > TRANSFORMS_KEPT) {
    await rm(folder, { recursive: true });
    await mkdir(folder);
  }
  return folder;
}
