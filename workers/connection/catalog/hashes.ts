/**
 * Hashes of the servers' definitions, by which entries of the cache file and servers that were left out are recognized.
 * The cache worker computes them. Called by: session/carry-out.ts.
 */

import { cacheIdentity } from "../config/entry/cache-identity.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { CachePool } from "./cache-worker.ts";

export interface DefinitionHashes {
  /** The hash of the definition that a server has now; empty if it is unknown. */
  of(server: string): string;
  /** Takes the definitions of a new plan. Settles when their hashes are known, or could not be computed. */
  update(definitions: readonly ServerDefinition[]): Promise<void>;
}

export function createDefinitionHashes(
  cache: Pick<CachePool, "hashDefinitions">,
  cwd: string,
): DefinitionHashes {
  let hashes = new Map<string, string>();
  /** The newest plan's hashes win, however long an older plan's take. */
  let updated: Promise<void> = Promise.resolve();
  return {
    of: (server) => hashes.get(server) ?? "",
    update: (definitions) => {
      const hashed = cache.hashDefinitions(definitions.map((definition) => cacheIdentity(definition, cwd)));
      updated = updated.then(async () => {
        const found = await hashed;
        hashes = new Map(definitions.map(({ name }, i) => [name, found[i] ?? ""]));
      });
      return updated;
    },
  };
}
