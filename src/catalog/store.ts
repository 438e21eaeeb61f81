/** The current catalog: from the snapshot file at first, then from the worker's events. */
import { LIMITS } from "../protocol/limits.ts";
import { type Catalog, catalogFrom } from "./catalog.ts";
import { readCatalog } from "./snapshot-file.ts";

export interface CatalogStore {
  current(): Catalog;
  /** Takes a snapshot from an event; false where its bytes are none. */
  replace(snapshot: Uint8Array): boolean;
  /**
   * Settles when the current catalog is the one of `checksum`: its event may come after the reply that names
   * it, on another port. Gives up after a bounded time.
   */
  reached(checksum: number | undefined): Promise<void>;
}

export function createCatalogStore(agentDir: string, cwd: string): CatalogStore {
  let catalog = readCatalog(agentDir, cwd);
  const waiting = new Set<{ checksum: number; resolve: () => void }>();
  return {
    current: () => catalog,
    replace: (snapshot) => {
      const next = catalogFrom(snapshot);
      if (!next) return false;
      catalog = next;
      for (const { checksum, resolve } of waiting) if (checksum === catalog.checksum) resolve();
      return true;
    },
    reached: async (checksum) => {
      if (checksum === undefined || checksum === catalog.checksum) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiter = { checksum, resolve };
      waiting.add(waiter);
      const timer = setTimeout(resolve, LIMITS.rpcShortMs);
      await promise;
      clearTimeout(timer);
      waiting.delete(waiter);
    },
  };
}
