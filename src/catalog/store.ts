/** The current catalog: from the snapshot file at first, then from the worker's events. */

import type { RemovedTools } from "../shared/protocol/catalog.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { SnapshotKey } from "../shared/snapshot/file-name.ts";
import { snapshotChecksum } from "../shared/snapshot/snapshot.ts";
import { readCatalog } from "./file.ts";
import { type Catalog, catalogFrom, catalogWithout, emptyCatalog } from "./known.ts";

export interface CatalogStore {
  current(): Catalog;
  /** Reads the snapshot of another place. */
  open(place: SnapshotKey): void;
  /** Knows nothing until the worker tells it. */
  clear(): void;
  /**
   * Checksum of the newest snapshot, also of one that nobody has looked at yet. Undefined where the catalog is
   * without something of it: a worker that starts must send it again.
   */
  checksum(): number | undefined;
  /** Takes a snapshot from an event. It is decoded when somebody looks: many may come while servers connect. */
  replace(snapshot: Uint8Array): void;
  /** Until the next snapshot the catalog is without these. */
  leaveOut(removed: RemovedTools): void;
  /**
   * Settles when the newest snapshot is the one of `checksum`: its event may come after the reply that names
   * it, on another port. Gives up after a bounded time.
   */
  reached(checksum: number | undefined): Promise<void>;
}

export function createCatalogStore(agentDir: string, place: SnapshotKey): CatalogStore {
  let catalog = readCatalog(agentDir, place);
  let newest: Uint8Array | undefined;
  let checksum = catalog.checksum;
  let isLess = false;
  const waiting = new Set<{ checksum: number; resolve: () => void }>();
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
      isLess = false;
      catalog = readCatalog(agentDir, other);
      checksum = catalog.checksum;
    },
    clear: () => {
      newest = undefined;
      isLess = false;
      catalog = emptyCatalog();
      checksum = undefined;
    },
    checksum: () => (isLess ? undefined : checksum),
    replace: (snapshot) => {
      newest = snapshot;
      isLess = false;
      checksum = snapshotChecksum(snapshot);
      for (const waiter of waiting) if (waiter.checksum === checksum) waiter.resolve();
    },
    leaveOut: (removed) => {
      catalog = catalogWithout(current(), removed);
      isLess = true;
    },
    reached: async (wanted) => {
      if (wanted === undefined || wanted === checksum) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiter = { checksum: wanted, resolve };
      waiting.add(waiter);
      const timer = setTimeout(resolve, LIMITS.rpcShortMs);
      await promise;
      clearTimeout(timer);
      waiting.delete(waiter);
    },
  };
}
