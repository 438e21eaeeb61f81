/** Finds and reads the snapshot of a working directory. The one file that main reads. */
import { hash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../shared/protocol/limits.ts";
import { SNAPSHOT_FOLDER, type SnapshotKey, snapshotFileName } from "../shared/snapshot/file-name.ts";
import { type Catalog, catalogFrom, emptyCatalog } from "./known.ts";

const sha256Hex = (text: string): string => hash("sha256", text);

export const snapshotPath = (agentDir: string, place: SnapshotKey): string =>
  join(agentDir, SNAPSHOT_FOLDER, snapshotFileName(place, sha256Hex));

/** Whether one of the files was changed since the snapshot was written: the plan may hold what it does not. */
export function snapshotIsOlder(agentDir: string, place: SnapshotKey, files: readonly string[]): boolean {
  const changedAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  try {
    const writtenAt = changedAt(snapshotPath(agentDir, place));
    return writtenAt === undefined || files.some((file) => (changedAt(file) ?? 0) > writtenAt);
  } catch {
    // A file that cannot even be looked at: the worker says what is wrong with it.
    return true;
  }
}

/** Nobody may hold up Pi's main thread: a pipe is not waited for, and a terminal keeps its keys. Not on Windows. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

/** All bytes of a regular file. Undefined for anything else, for a file that is too large, and for half of one. */
function readWhole(path: string, limitBytes: number): Uint8Array | undefined {
  // Looked at first: the opening itself can do something to a device.
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return undefined;
  const file = openSync(path, FLAGS);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile() || stats.size > limitBytes) return undefined;
    const bytes = Buffer.allocUnsafe(stats.size);
    for (let length = 0; length < bytes.length; ) {
      const read = readSync(file, bytes, length, bytes.length - length, length);
      if (read === 0) return undefined;
      length += read;
    }
    return bytes;
  } finally {
    closeSync(file);
  }
}

/** The stored catalog, or an empty one where there is none, or none that can be read: the worker makes it anew. */
export function readCatalog(agentDir: string, place: SnapshotKey): Catalog {
  const path = snapshotPath(agentDir, place);
  try {
    const bytes = readWhole(path, LIMITS.snapshotBytes);
    return (bytes && catalogFrom(bytes)) ?? emptyCatalog();
  } catch {
    // Unreadable is the same as absent here: the factory must not fail, and the worker reports what it cannot write.
    return emptyCatalog();
  }
}
