/**
 * Holds the current catalog: at first that of the snapshot file of the working directory, the only file that main reads,
 * then what the worker's events make of it.
 */
import { hash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { RemovedTools } from "../shared/protocol/session.ts";
import { SNAPSHOT_FOLDER, type SnapshotKey, snapshotFileName } from "../shared/snapshot/contract.ts";
import { snapshotChecksum } from "../shared/snapshot/snapshot.ts";
import { type Catalog, catalogFrom, catalogWithout, emptyCatalog } from "./catalog.ts";

const sha256Hex = (text: string): string => hash("sha256", text);

export const snapshotPath = (agentDir: string, key: SnapshotKey): string =>
  join(agentDir, SNAPSHOT_FOLDER, snapshotFileName(key, sha256Hex));

/** Whether one of the files has changed since the snapshot was written. The plan may then differ from the snapshot. */
export function snapshotIsOlder(agentDir: string, key: SnapshotKey, files: readonly string[]): boolean {
  const changedAt = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  try {
    const writtenAt = changedAt(snapshotPath(agentDir, key));
    return writtenAt === undefined || files.some((file) => (changedAt(file) ?? 0) > writtenAt);
  } catch {
    // The worker reports what is wrong with a file that cannot be examined.
    return true;
  }
}

/** When the snapshot was written, in milliseconds since the epoch; undefined if there is none. */
export function snapshotWrittenAt(agentDir: string, key: SnapshotKey): number | undefined {
  try {
    return statSync(snapshotPath(agentDir, key), { throwIfNoEntry: false })?.mtimeMs;
  } catch {
    // A snapshot that cannot be examined cannot be read either.
    return undefined;
  }
}

/** Opening must not block Pi's main thread (a pipe) nor take over a terminal. Windows has neither flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

/** All bytes of a regular file; undefined for anything else, for a file that is too large, or that shrinks meanwhile. */
export function readWhole(path: string, limitBytes: number): Uint8Array | undefined {
  // The type is checked before the opening, because opening a device can already have an effect.
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

/** The stored catalog. An empty one if no snapshot can be read: the worker makes a new snapshot. */
export function readCatalog(agentDir: string, key: SnapshotKey): Catalog {
  const path = snapshotPath(agentDir, key);
  try {
    const bytes = readWhole(path, LIMITS.snapshotBytesATool * LIMITS.snapshotTools);
    return (bytes && catalogFrom(bytes)) ?? emptyCatalog();
  } catch {
    // An unreadable snapshot counts as absent: the factory must not fail, and the worker reports a file that it cannot
    // write.
    return emptyCatalog();
  }
}

export interface CatalogStore {
  current(): Catalog;
  /** Reads the snapshot of another folder or configuration file. */
  open(key: SnapshotKey): void;
  /** Empties the catalog until the worker sends a snapshot. */
  clear(): void;
  /**
   * Checksum of the newest snapshot, also before the snapshot is decoded. Undefined after `leaveOut`, so that a new
   * worker sends the snapshot again.
   */
  checksum(): number | undefined;
  /** Takes a snapshot from an event. It is decoded at the first access: many may come while servers connect. */
  replace(snapshot: Uint8Array): void;
  /** Removes servers and tools until the next snapshot comes. */
  leaveOut(removed: RemovedTools): void;
}

export function createCatalogStore(agentDir: string, key: SnapshotKey): CatalogStore {
  let catalog = readCatalog(agentDir, key);
  let newest: Uint8Array | undefined;
  let checksum = catalog.checksum;
  let isPartial = false;
  const current = (): Catalog => {
    if (newest) {
      catalog = catalogFrom(newest, { isWhole: true }) ?? catalog;
      newest = undefined;
    }
    return catalog;
  };
  return {
    current,
    open: (other) => {
      newest = undefined;
      isPartial = false;
      catalog = readCatalog(agentDir, other);
      checksum = catalog.checksum;
    },
    clear: () => {
      newest = undefined;
      isPartial = false;
      catalog = emptyCatalog();
      checksum = undefined;
    },
    checksum: () => (isPartial ? undefined : checksum),
    replace: (snapshot) => {
      newest = snapshot;
      isPartial = false;
      checksum = snapshotChecksum(snapshot);
    },
    leaveOut: (removed) => {
      catalog = catalogWithout(current(), removed);
      isPartial = true;
    },
  };
}
