/** Owns: one temp folder per test, removed after it. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onCleanup } from "../support/cleanup.ts";

export async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "pmt-unit-"));
  onCleanup(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
