/**
 * Removes files that nobody needs any more: temp files of killed writers, old copies of broken cache files, snapshots of
 * folders where nobody works. Never fails a task: a file that cannot be removed now is removed later.
 */
import { basename, dirname, join } from "node:path";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isTempName } from "./atomic-file.ts";
import type { FileSystem } from "./file-system.ts";

/** Age in milliseconds by the file's time of change; undefined if there is no file. */
async function ageMs(path: string, files: FileSystem, nowMs: number): Promise<number | undefined> {
  const { file } = await files.find(path);
  return file && nowMs - file.modifiedMs;
}

/** Removes a file, or a folder with its files. */
async function removeWhole(path: string, files: FileSystem): Promise<void> {
  const inside = await files.list(path).catch(() => []);
  for (const name of inside) await files.remove(join(path, name));
  await files.remove(path);
}

/** Removes files of a folder whose last change is long ago. Throws if the folder cannot be listed. */
export async function removeOld(
  folder: string,
  files: FileSystem,
  { nowMs, olderThanMs, fits }: { nowMs: number; olderThanMs: number; fits: (name: string) => boolean },
): Promise<void> {
  for (const name of (await files.list(folder)).filter(fits)) {
    try {
      const path = join(folder, name);
      if (((await ageMs(path, files, nowMs)) ?? 0) > olderThanMs) await removeWhole(path, files);
    } catch {
      // The file is gone, or belongs to another process now.
    }
  }
}

/** Removes temp files beside `target` whose writers were killed. Files of other programs stay. */
export async function sweepTemps(target: string, files: FileSystem, nowMs: number): Promise<void> {
  const start = `.${basename(target).replace(/^\./, "").slice(0, 40)}.`;
  await removeOld(dirname(target), files, {
    nowMs,
    olderThanMs: LIMITS.leftoverMs,
    fits: (name) => name.startsWith(start) && isTempName(name),
  }).catch(() => undefined);
}

const corruptPrefix = (target: string): string => `${basename(target)}.corrupt-`;

/** Moves a broken file aside, and removes the oldest such copies beyond the limit. Throws if the file cannot be moved. */
export async function keepAside(target: string, files: FileSystem, nowMs: number): Promise<void> {
  const date = new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-");
  const folder = dirname(target);
  await files.rename(target, join(folder, `${corruptPrefix(target)}${date}`));
  try {
    // The date sorts as text.
    const copies = (await files.list(folder)).filter((name) => name.startsWith(corruptPrefix(target))).sort();
    for (const name of copies.slice(0, -LIMITS.corruptCopies)) await files.remove(join(folder, name));
  } catch {
    // An extra copy does no harm.
  }
}

/** Removes snapshots that nobody used for thirty days, the lists of servers they leave out, and their writers' temp files. */
export async function pruneSnapshots(folder: string, files: FileSystem, nowMs: number): Promise<void> {
  await removeOld(folder, files, {
    nowMs,
    olderThanMs: LIMITS.unusedMs,
    fits: (name) => /\.(bin|left-out\.json)$/.test(name),
  }).catch(() => undefined);
  await removeOld(folder, files, { nowMs, olderThanMs: LIMITS.leftoverMs, fits: isTempName }).catch(
    () => undefined,
  );
}
