/**
 * Owns: a file or folder that all processes of a test run share. The first process that asks makes it, the others wait.
 * Must not: know what is made.
 * Called by: run-package.ts, and the baseline of the hostile tests.
 */
import { existsSync } from "node:fs";
import { mkdir, rename, rmdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { removeFolder } from "./temp-folder.ts";

const POLL_MS = 50;

/** Resolves once `path` exists. `make` gets another path, which is renamed to `path` after it. */
export async function madeOnce(path: string, make: (unfinished: string) => Promise<unknown>): Promise<void> {
  const claim = `${path}.claim`;
  while (!existsSync(path)) {
    if (await isFirst(claim)) await makeClaimed(path, claim, make);
    else await sleep(POLL_MS);
  }
}

/** Only one process can make a folder. If its `make` fails, the folder goes and the next process tries. */
const isFirst = (claim: string): Promise<boolean> =>
  mkdir(claim).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );

async function makeClaimed(
  path: string,
  claim: string,
  make: (unfinished: string) => Promise<unknown>,
): Promise<void> {
  const unfinished = `${path}.unfinished`;
  try {
    // Another process may have finished between the look at the path and the claim.
    if (existsSync(path)) return;
    await make(unfinished);
    await rename(unfinished, path);
  } finally {
    await removeFolder(unfinished);
    await rmdir(claim);
  }
}
