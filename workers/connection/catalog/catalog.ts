/**
 * Keeps main's catalog current: gathers changes for a moment, lets the cache worker build the snapshot, and
 * sends it on; beside that, lets it store what is new. One publication at a time; changes meanwhile make one
 * more. No file delays a snapshot: it may lie on a slow disk, or be locked by another process. A server whose
 * tools cannot be published is left out and told, and the others do not wait for it again.
 */

import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Log } from "../../shared/log.ts";
import type { CacheEntry, PublishTask } from "../../shared/tasks.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { Server } from "../servers/servers.ts";
import type { CachePool } from "./cache-worker.ts";
import { isNothing, removedSince } from "./difference.ts";
import { LeftOutServers, leftOutPath } from "./left-out.ts";
import { type PublishTimes, publishApart, publishTimes, withoutToolsOf } from "./publish-apart.ts";
import { publishTask } from "./publish-task.ts";
import { createServerNotices } from "./server-notices.ts";

export { type CachePool, createCachePool } from "./cache-worker.ts";
export { publishTimes } from "./publish-apart.ts";
export { catalogSettings } from "./settings.ts";

export interface CatalogOptions {
  generation: number;
  cachePath: string;
  snapshotPath: string;
  knownChecksum: number | undefined;
  servers: () => readonly Server[];
  settings: () => Settings;
  /** What the configuration was read from. */
  configFiles: () => readonly string[];
  hashOf: (server: string) => string;
  cache: CachePool;
  log: Log;
  emit: (event: WorkerEvent) => void;
  times?: PublishTimes;
}

export interface CatalogPublisher {
  /** Hashes of stored entries whose use is to be written down, by server. */
  noteUsed(hashes: Record<string, string>): void;
  /** `server` listed its tools; without a server only the set of servers may have changed. */
  changed(server?: Server): void;
  /**
   * Tells main at once what is gone, where nothing else differs from what it has: that needs no new index. False
   * where it does not have the newest catalog by that.
   */
  withdraw(): boolean;
  /** Settles when everything told so far is published, or could not be; it may not be stored yet. */
  flush(): Promise<void>;
  /** The user asks for a server, or for all: one that was left out is tried again. */
  retry(server: string | undefined): void;
  /** The session ends: what was listed and not stored yet is stored, but no longer sent. */
  finish(): Promise<void>;
  /** Of the snapshot that main has been sent, or had from the start. */
  readonly checksum: number | undefined;
}

export function createCatalogPublisher(options: CatalogOptions): CatalogPublisher {
  /** Listed, and not known to be stored. */
  const fresh = new Set<Server>();
  const leftOut = new LeftOutServers({
    path: leftOutPath(options.snapshotPath),
    hashOf: options.hashOf,
    log: options.log,
  });
  const notices = createServerNotices({
    log: options.log,
    show: (text) => options.emit({ type: "notice", generation: options.generation, text, level: "warning" }),
  });
  const lifetime = new AbortController();
  const { times = publishTimes() } = options;
  let used: Record<string, string> = {};
  let storing: Promise<void> = Promise.resolve();
  let keeping: Promise<void> = Promise.resolve();
  let checksum = options.knownChecksum;
  let timer: NodeJS.Timeout | undefined;
  let publishing: Promise<void> | undefined;
  let again = false;
  /** Changes that were told, and those of them that have been published, or could not be. */
  const count = { told: 0, done: 0 };
  let onDone = Promise.withResolvers<void>();
  let published: PublishTask | undefined;
  /** Main has less than was published last. */
  let isLess = false;
  let stopped = false;

  const toEntry = (server: Server): CacheEntry => ({
    configHash: options.hashOf(server.name),
    tools: server.tools ?? [],
    ...(server.resources
      ? { resources: server.resources.resources, resourceTemplates: server.resources.templates }
      : {}),
    ...(server.prompts ? { prompts: server.prompts } : {}),
    ...(server.instructions === undefined ? {} : { instructions: server.instructions }),
    cachedAt: Date.now(),
  });

  /** What could not be stored is tried again with the next change. */
  const store = async (): Promise<void> => {
    const servers = [...fresh].filter((server) => options.hashOf(server.name) !== "");
    const task = {
      path: options.cachePath,
      entries: Object.fromEntries(servers.map((server) => [server.name, toEntry(server)])),
      used,
    };
    if (servers.length === 0 && Object.keys(used).length === 0) return;
    fresh.clear();
    used = {};
    if (!(await options.cache.storeEntries(task))) for (const server of servers) fresh.add(server);
  };

  const toTask = (): PublishTask => {
    const settings = options.settings();
    const servers = options.servers().filter((server) => server.definition.enabled);
    const task = publishTask(servers, settings, options.configFiles());
    return withoutToolsOf(task, new Set(servers.map(({ name }) => name).filter((name) => leftOut.has(name))));
  };

  /** `lines`: each begins with the name of its server. None at a start that finds what the last one found. */
  const tellLines = (lines: readonly string[], task: PublishTask, isForUser: boolean): void => {
    const names = task.servers.map(({ name }) => name).sort((a, b) => b.length - a.length);
    for (const line of lines) {
      const server = names.find((name) => line.startsWith(`${name}: `)) ?? "";
      notices.tell({ server, text: isForUser ? `MCP tools of ${line}` : line, isForUser });
    }
  };

  const tellLeftOut = (servers: readonly string[]): void => {
    for (const server of servers) {
      const text = `MCP server ${server}: its tools are left out, because preparing them takes too long or fails. The other servers are not affected. /mcp reconnect ${server} tries again, /mcp disable ${server} switches it off.`;
      notices.tell({ server, text, isForUser: true });
    }
  };

  const publishOnce = async (): Promise<void> => {
    await leftOut.load();
    const task = toTask();
    storing = storing.then(store);
    tellLeftOut(task.servers.filter(({ name }) => leftOut.has(name)).map(({ name }) => name));
    // As after an edit of a timeout: the index of all tools need not be built to find that nothing is new.
    const removed = published && !isLess ? removedSince(published, task) : undefined;
    if (removed && isNothing(removed)) return;
    const known = isLess ? undefined : checksum;
    const path = options.snapshotPath;
    const stored = known === undefined ? {} : { stored: { path, checksum: known } };
    const { publish } = options.cache;
    const made = await publishApart({ ...task, ...stored }, { publish, signal: lifetime.signal, times });
    for (const server of made.leftOut) leftOut.add(server);
    tellLeftOut(made.leftOut);
    const { result } = made;
    if (!result) return;
    published = withoutToolsOf(task, new Set(made.leftOut));
    isLess = false;
    checksum = result.checksum;
    const { snapshot } = result;
    const isNew = checksum !== known;
    // Main is given the bytes themselves.
    const kept = { path, isNew, ...(snapshot ? { snapshot: snapshot.slice() } : {}) };
    keeping = keeping.then(() => options.cache.keepSnapshot(kept));
    const isSent = snapshot !== undefined && isNew && !stopped;
    tellLines(result.repairs, task, false);
    tellLines(result.notices, task, isSent);
    if (!isSent) return;
    options.emit({ type: "catalog", generation: options.generation, snapshot });
  };

  const publish = async (): Promise<void> => {
    do {
      again = false;
      const { told } = count;
      try {
        await publishOnce();
      } finally {
        count.done = told;
        onDone.resolve();
        onDone = Promise.withResolvers<void>();
      }
    } while (again);
  };

  const start = (): void => {
    timer = undefined;
    if (publishing) {
      again = true;
      return;
    }
    publishing = publish().finally(() => {
      publishing = undefined;
    });
  };

  return {
    get checksum() {
      return checksum;
    },
    noteUsed(hashes) {
      used = { ...used, ...hashes };
    },
    changed(server) {
      if (stopped) return;
      if (server) fresh.add(server);
      count.told++;
      timer ??= setTimeout(start, LIMITS.catalogDebounceMs);
    },
    withdraw() {
      // What is under way would bring back what is gone, until the next one.
      if (!published || publishing || isLess || stopped) return false;
      const removed = removedSince(published, toTask());
      if (!removed || isNothing(removed)) return removed !== undefined;
      isLess = true;
      options.emit({ type: "removed", generation: options.generation, ...removed });
      return true;
    },
    async flush() {
      if (timer) {
        clearTimeout(timer);
        start();
      }
      const { told } = count;
      // What is told from here on does not count: a server may tell of changes for ever.
      while (publishing && count.done < told) await onDone.promise;
    },
    retry(server) {
      if (stopped || !leftOut.forget(server)) return;
      count.told++;
      timer ??= setTimeout(start, LIMITS.catalogDebounceMs);
    },
    async finish() {
      stopped = true;
      const due = timer !== undefined && fresh.size > 0;
      clearTimeout(timer);
      timer = undefined;
      if (due) start();
      const end = setTimeout(() => lifetime.abort(), times.finishMs);
      while (publishing) await publishing;
      clearTimeout(end);
      await leftOut.saved();
      await keeping;
      await storing;
      // The last moment for what could not be stored when it was new.
      if (fresh.size > 0) await store();
    },
  };
}
