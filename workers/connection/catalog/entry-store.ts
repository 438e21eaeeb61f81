/**
 * Stores the lists of servers in the metadata cache, one task after the other. Owns what is not stored yet: what a failed
 * task held is stored again with the next change. Called by: catalog.ts.
 */
import type { CacheEntry, StoreTask } from "../../shared/tasks.ts";
import type { Server } from "../servers/server.ts";
import type { CachePool } from "./cache-worker.ts";

/** The part of a server that an entry of the cache holds. */
export type StoredServer = Pick<
  Server,
  "name" | "tools" | "resources" | "prompts" | "instructions" | "protocol"
>;

export interface EntryStoreOptions {
  cache: Pick<CachePool, "storeEntries">;
  /** Absolute path of the cache file. */
  path: string;
  /** The hash of the definition that a server has now; empty if it is unknown. */
  hashOf: (server: string) => string;
}

export class EntryStore {
  readonly #options: EntryStoreOptions;
  /** Servers that have listed something, and are not known to be stored. */
  readonly #unsaved = new Set<StoredServer>();
  #used: Record<string, string> = {};
  #storing: Promise<void> = Promise.resolve();

  constructor(options: EntryStoreOptions) {
    this.#options = options;
  }

  /** Whether a server listed something that is not stored. */
  get hasUnsaved(): boolean {
    return this.#unsaved.size > 0;
  }

  /** The server listed its tools, resources or prompts. */
  add(server: StoredServer): void {
    this.#unsaved.add(server);
  }

  /** Hashes of entries whose use is to be written down, by server. */
  noteUsed(hashes: Record<string, string>): void {
    this.#used = { ...this.#used, ...hashes };
  }

  /** Stores once the tasks before have ended. Nobody has to wait for it. */
  store(): void {
    this.#storing = this.#storing.then(() => this.#storeNow());
  }

  /** For the end of the session: settles when everything is stored, or the last attempt to store it failed. */
  async finish(): Promise<void> {
    await this.#storing;
    if (this.hasUnsaved) await this.#storeNow();
  }

  async #storeNow(): Promise<void> {
    const { cache, path, hashOf } = this.#options;
    // Without a hash an entry would be found by no later session.
    const servers = [...this.#unsaved].filter(({ name }) => hashOf(name) !== "");
    const used = this.#used;
    if (servers.length === 0 && Object.keys(used).length === 0) return;
    const entries = servers.map((server) => [server.name, toEntry(server, hashOf(server.name), Date.now())]);
    const task: StoreTask = { path, entries: Object.fromEntries(entries), used };
    this.#unsaved.clear();
    this.#used = {};
    if (!(await cache.storeEntries(task))) for (const server of servers) this.#unsaved.add(server);
  }
}

/** `cachedAt`: in milliseconds since the epoch. */
export function toEntry(server: StoredServer, configHash: string, cachedAt: number): CacheEntry {
  const { tools = [], resources, prompts, instructions, protocol } = server;
  return {
    configHash,
    tools,
    ...(resources ? { resources: resources.resources, resourceTemplates: resources.templates } : {}),
    ...(prompts ? { prompts } : {}),
    ...(instructions === undefined ? {} : { instructions }),
    ...(protocol ? { protocol } : {}),
    cachedAt,
  };
}
