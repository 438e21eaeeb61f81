/**
 * Owns: what lies below a folder while programs write there. Locks and temporary files come and go at any time, and
 * what has gone is left out: `readdir` with `recursive` would fail.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";

export interface Entry {
  path: string;
  isFile: boolean;
}

/** Undefined if the file or folder has gone. */
export const unlessGone = <T>(reading: Promise<T>): Promise<T | undefined> =>
  reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });

/** Folders and files, each folder before its content. Links are not followed. */
export async function entriesBelow(folder: string): Promise<Entry[]> {
  const found = (await unlessGone(readdir(folder, { withFileTypes: true }))) ?? [];
  const below = found.map(async (entry): Promise<Entry[]> => {
    const path = join(folder, entry.name);
    const own = { path, isFile: entry.isFile() };
    return entry.isDirectory() ? [own, ...(await entriesBelow(path))] : [own];
  });
  return (await Promise.all(below)).flat();
}

export const filesBelow = async (folder: string): Promise<string[]> =>
  (await entriesBelow(folder)).filter(({ isFile }) => isFile).map(({ path }) => path);
