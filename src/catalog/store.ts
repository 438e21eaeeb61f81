/** Holds the current catalog: at first that of the snapshot file, then what the worker's events make of it. */

import type { RemovedTools } from "../shared/protocol/catalog.ts";
import type { SnapshotKey } from "../shared/snapshot/file-name.ts";
import { snapshotChecksum } from "../shared/snapshot/snapshot.ts";
import { readCatalog } from "./file.ts";
import { type Catalog, catalogFrom, catalogWithout, emptyCatalog } from "./known.ts";

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
