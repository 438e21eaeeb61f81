/** Owns: a home that several tests start Pi in, put back before each to what an earlier run has left. */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { PiHome } from "../support/pi-run.ts";
import { killMarked } from "../support/processes.ts";

/**
 * Copies the agent folder and the project folder. The function that it answers ends what still runs and puts the copy
 * back in the same place: sessions and snapshots name their folder, and a snapshot must stay younger than the files
 * that it was made of, so that all times are kept.
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
