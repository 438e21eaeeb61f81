/**
 * Owns: new folders below the temp folder. Their paths are real ones: on macOS the temp folder is behind a link, and what tests
 * compare are the real paths that this package tells.
 */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Whoever makes the folder removes it. Its name begins with `name`. */
export const makeTempFolder = async (name: string): Promise<string> =>
  mkdtemp(join(await realpath(tmpdir()), `${name}-`));

/** A process that ends meanwhile may still write there: then the removal is tried again. */
export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
