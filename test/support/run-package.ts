/**
 * Owns: the packed package of a whole test run. The first test that asks packs it; the files of all processes share it,
 * and with it the code that Node compiled for its path.
 * Must not: be changed by a test. The global setup removes it after the run.
 * Called by: the end-to-end tests and the hostile tests.
 */
import { existsSync } from "node:fs";
import { mkdir, realpath, rename, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inject } from "vitest";
import { unpackBelow } from "./package-under-node-modules.ts";

const POLL_MS = 50;

/** Absolute path of the `dist/index.js` that Pi loads. */
export async function packedEntry(): Promise<string> {
  const folder = join(inject("piCaches"), "package");
  const claim = `${folder}.claim`;
  while (!existsSync(folder)) {
    if (await isFirst(claim)) await pack(folder, claim);
    else await sleep(POLL_MS);
  }
  return join(await realpath(folder), "node_modules", "pi-mcp-threads", "dist", "index.js");
}

/** Only one process can make a folder. If its `pack` fails, the folder goes and the next process tries. */
const isFirst = (claim: string): Promise<boolean> =>
  mkdir(claim).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );

async function pack(folder: string, claim: string): Promise<void> {
  const unfinished = `${folder}.unfinished`;
  try {
    // Another process may have finished between the look at the folder and the claim.
    if (existsSync(folder)) return;
    await mkdir(unfinished);
    await unpackBelow(unfinished);
    await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
    await rmdir(claim);
  }
}
