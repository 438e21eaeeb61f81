/**
 * Owns: the packed package of a whole test run. The first test that asks packs it; the files of all processes share it,
 * and with it the code that Node compiled for its path.
 * Must not: be changed by a test. The global setup removes it after the run.
 * Called by: the end-to-end tests, the hostile tests and the boundary test of the package.
 */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import { madeOnce } from "./made-once.ts";
import { TARBALL, unpackBelow } from "./package-under-node-modules.ts";

async function packed(): Promise<string> {
  const folder = join(inject("piCaches"), "package");
  await madeOnce(folder, async (unfinished) => {
    await mkdir(unfinished);
    await unpackBelow(unfinished);
  });
  return realpath(folder);
}

/** Absolute path of the `index.js` that Pi loads. */
export const packedEntry = async (): Promise<string> =>
  join(await packed(), "node_modules", "pi-mcp-threads", "index.js");

/** Absolute path of the tarball from which it was unpacked. */
export const packedTarball = async (): Promise<string> => join(await packed(), TARBALL);
