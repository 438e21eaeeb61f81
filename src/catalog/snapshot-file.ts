/** Finds and reads the snapshot of a working directory. The one file that main reads. */
import { hash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../protocol/limits.ts";
import { SNAPSHOT_FOLDER, type SnapshotPlace, snapshotFileName } from "../protocol/paths.ts";
import { type Catalog, catalogFrom, emptyCatalog } from "./catalog.ts";

const sha256Hex = (text: string): string => hash("sha256", text);

export const snapshotPath = (agentDir: string, place: SnapshotPlace): string =>
  join(agentDir, SNAPSHOT_FOLDER, snapshotFileName(place, sha256Hex));

/** Whether one of the files was changed since the snapshot was written: the plan may hold what it does not. */
export function snapshotIsOlder(agentDir: string, place: SnapshotPlace, files: readonly string[]): boolean {
  const changedAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  try {
    const writtenAt = changedAt(snapshotPath(agentDir, place));
    return writtenAt === undefined || files.some((file) => (changedAt(file) ?? 0) > writtenAt);
  } catch {
    // A file that cannot even be looked at: the worker says what is wrong with it.
    return true;
  }
}

/** The stored catalog, or an empty one where there is none, or none that can be read: the worker makes it anew. */
export function readCatalog(agentDir: string, place: SnapshotPlace): Catalog {
  const path = snapshotPath(agentDir, place);
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found?.isFile() || found.size > LIMITS.snapshotBytes) return emptyCatalog();
    return catalogFrom(readFileSync(path)) ?? emptyCatalog();
  } catch {
    // Unreadable is the same as absent here: the factory must not fail, and the worker reports what it cannot write.
    return emptyCatalog();
  }
}
