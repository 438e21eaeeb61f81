/**
 * What is kept of servers between sessions: their lists in the metadata cache (stored one task after the other; what a
 * failed task held is stored again with the next change), the servers whose tools cannot be published, and the hashes of
 * the definitions by which both are recognized. Tools that made the cache worker fail once do so again, and each time all
 * other servers wait: such a server is remembered for the session and, in a file beside the snapshot of the working
 * directory, for the starts of the next day.
 */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { writeFileAtomic } from "../../shared/files/file-system.ts";
import { readRegularText } from "../../shared/files/read-regular.ts";
import { readList } from "../../shared/listed.ts";
import type { Log } from "../../shared/log.ts";
import type { CacheEntry, StoreTask } from "../../shared/tasks.ts";
import { cacheIdentity } from "../config/entry/cache-identity.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Server } from "../servers/server.ts";
import type { CacheWorker } from "./cache-worker.ts";

/** The part of a server that an entry of the cache holds. */
export type StoredServer = Pick<
  Server,
  | "name"
  | "tools"
  | "resources"
  | "prompts"
  | "skills"
  | "instructions"
  | "protocol"
  | "listedAt"
  | "isUnattended"
  | "withLeftOut"
>;

/** Answers the hash of the definition that a server has now; empty if it is unknown. */
type HashOf = (server: string) => string;

export class EntryStore {
  readonly #cache: Pick<CacheWorker, "storeEntries">;
  readonly #path: string;
  readonly #hashOf: HashOf;
  readonly #servers: () => readonly StoredServer[];
  /** Servers that have listed something, and are not known to be stored. */
  readonly #unsaved = new Set<StoredServer>();
  #used: Record<string, string> = {};
  #storing: Promise<void> = Promise.resolve();

  /** `path`: absolute, of the cache file. `servers`: those of the plan now. */
  constructor(
    cache: Pick<CacheWorker, "storeEntries">,
    path: string,
    { hashOf, servers }: { hashOf: HashOf; servers: () => readonly StoredServer[] },
  ) {
    this.#cache = cache;
    this.#path = path;
    this.#hashOf = hashOf;
    this.#servers = servers;
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
    if (this.#unsaved.size > 0) await this.#storeNow();
  }

  async #storeNow(): Promise<void> {
    const hashOf = this.#hashOf;
    const current = new Set(this.#servers());
    // The hash is that of the definition now: what a server listed that an edit has replaced since is another program's. Without
    // a hash an entry would be found by no later session.
    const servers = [...this.#unsaved].filter((one) => current.has(one) && hashOf(one.name) !== "");
    const used = this.#used;
    if (servers.length === 0 && Object.keys(used).length === 0) return;
    const entries = servers.map((server) => [server.name, toEntry(server, hashOf(server.name), Date.now())]);
    const task: StoreTask = { path: this.#path, entries: Object.fromEntries(entries), used };
    this.#unsaved.clear();
    this.#used = {};
    if (!(await this.#cache.storeEntries(task))) for (const server of servers) this.#unsaved.add(server);
  }
}

/** `nowMs`: in milliseconds since the epoch. */
export function toEntry(server: StoredServer, configHash: string, nowMs: number): CacheEntry {
  const { tools = [], withLeftOut, resources, prompts, skills, instructions, protocol } = server;
  return {
    configHash,
    tools: withLeftOut ? readList(withLeftOut.tools) : tools,
    ...(resources ? { resources: resources.resources, resourceTemplates: resources.templates } : {}),
    ...(prompts ? { prompts } : {}),
    ...(skills ? { skills } : {}),
    ...(instructions === undefined ? {} : { instructions }),
    ...(protocol ? { protocol } : {}),
    signs: true,
    ...(server.isUnattended ? { unattended: true } : {}),
    cachedAt: withLeftOut?.cachedAt ?? server.listedAt ?? nowMs,
  };
}

/** The definition of a server that was left out, and when that was, in milliseconds since the epoch. */
interface Mark {
  configHash: string;
  at: number;
}

/** Enough for all servers that can be configured. A larger file was not written by this extension. */
const FILE_BYTES = 64 * 1024;
const VERSION = 1;

/** `.../<hash>.bin` -> `.../<hash>.left-out.json`. */
export const leftOutPath = (snapshotPath: string): string => snapshotPath.replace(/\.bin$/, ".left-out.json");

/** A mark from the future was made before a clock was set back. */
function isRecent({ at }: Pick<Mark, "at">, nowMs: number): boolean {
  const age = nowMs - at;
  return age > -LIMITS.clockSkewMs && age < LIMITS.leftOutMs;
}

function readMarks(text: string, nowMs: number): [string, Mark][] {
  const content: unknown = JSON.parse(text);
  if (!isObject(content) || content.version !== VERSION || !isObject(content.servers)) return [];
  return Object.entries(content.servers).flatMap(([name, mark]): [string, Mark][] => {
    if (!isObject(mark) || typeof mark.configHash !== "string" || typeof mark.at !== "number") return [];
    const { configHash, at } = mark;
    return isRecent({ at }, nowMs) ? [[name, { configHash, at }]] : [];
  });
}

export class LeftOutServers {
  readonly #path: () => string;
  readonly #hashOf: HashOf;
  readonly #log: Log;
  #marks = new Map<string, Mark>();
  #loaded: Promise<void> | undefined;
  #saved: Promise<void> = Promise.resolve();

  constructor(path: () => string, hashOf: HashOf, log: Log) {
    this.#path = path;
    this.#hashOf = hashOf;
    this.#log = log;
  }

  /** Reads the file once. Never rejects: without the file each server is tried. */
  load(): Promise<void> {
    this.#loaded ??= this.#read().catch(() => undefined);
    return this.#loaded;
  }

  async #read(): Promise<void> {
    const read = await readRegularText(this.#path(), FILE_BYTES);
    if (read.kind !== "text") return;
    this.#marks = new Map([...readMarks(read.text, Date.now()), ...this.#marks]);
  }

  has(server: string): boolean {
    const mark = this.#marks.get(server);
    return mark !== undefined && mark.configHash === this.#hashOf(server) && isRecent(mark, Date.now());
  }

  add(server: string): void {
    this.#marks.set(server, { configHash: this.#hashOf(server), at: Date.now() });
    this.#save();
  }

  /**
   * Forgets the server, or all servers, so that the next publication tries them again. Answers whether any was left out.
   */
  forget(server: string | undefined): boolean {
    const names = server === undefined ? [...this.#marks.keys()] : [server];
    const gone = names.filter((name) => this.#marks.delete(name));
    if (gone.length > 0) this.#save();
    return gone.length > 0;
  }

  /** Settles when the file is as it should be, or could not be written. */
  saved(): Promise<void> {
    return this.#saved;
  }

  #save(): void {
    // Without a hash a mark would hold for every definition.
    const servers = Object.fromEntries([...this.#marks].filter(([, { configHash }]) => configHash !== ""));
    this.#saved = this.#saved
      .then(() => writeFileAtomic(this.#path(), JSON.stringify({ version: VERSION, servers })))
      .catch((error) => this.#log.warn(`${this.#path()} could not be written: ${messageOf(error)}`));
  }
}

export class DefinitionHashes {
  readonly #cache: Pick<CacheWorker, "hashDefinitions">;
  readonly #cwd: string;
  #hashes = new Map<string, string>();
  /** The newest plan's hashes win, however long an older plan's take. */
  #updated: Promise<unknown> = Promise.resolve();

  constructor(cache: Pick<CacheWorker, "hashDefinitions">, cwd: string) {
    this.#cache = cache;
    this.#cwd = cwd;
  }

  /** The hash of the definition that a server has now; empty if it is unknown. */
  of(server: string): string {
    return this.#hashes.get(server) ?? "";
  }

  /**
   * Takes the definitions of a new plan. Settles when their hashes are known, or could not be computed. Answers the servers
   * that had another hash before.
   */
  update(definitions: readonly ServerDefinition[]): Promise<string[]> {
    const identities = definitions.map((definition) => cacheIdentity(definition, this.#cwd));
    const hashed = this.#cache.hashDefinitions(identities);
    const updated = this.#updated.then(async () => {
      const found = await hashed;
      const before = this.#hashes;
      this.#hashes = new Map(definitions.map(({ name }, i) => [name, found[i] ?? ""]));
      return [...before.keys()].filter((name) => before.get(name) !== this.of(name));
    });
    this.#updated = updated;
    return updated;
  }
}
