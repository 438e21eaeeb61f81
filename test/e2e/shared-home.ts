/** Owns: a home in which several tests start Pi; before each test it gets back the state that an earlier run left. */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { PiHome } from "../support/pi-run.ts";
import { killMarked } from "../support/processes.ts";

/**
 * Copies the agent folder and the project folder. Resolves with a function that ends all running processes of the home
 * and restores the copy in the same place. The place stays the same because sessions and snapshots name their folder.
 * File times are kept because a snapshot must stay younger than its source files.
 */
export async function keepHome({ dir }: PiHome): Promise<() => Promise<void>> {
  const folders = [".pi", "project"];
  const copy = async (from: string, to: string): Promise<void> => {
    await cp(from, to, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
  };
  for (const folder of folders) await copy(join(dir, folder), join(dir, "kept", folder));
  return async () => {
    await killMarked(`HOME=${dir}`);
    for (const folder of folders) {
      await rm(join(dir, folder), { recursive: true, force: true });
      await copy(join(dir, "kept", folder), join(dir, folder));
    }
  };
}
