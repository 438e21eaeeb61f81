/**
 * Keeps main's catalog current: gathers changes for a moment, lets the cache worker build the snapshot, and
 * sends it on; beside that, lets it store what is new. One publication at a time; changes meanwhile make one
 * more. No file delays a snapshot: it may lie on a slow disk, or be locked by another process.
 */
import { LIMITS } from "../../src/protocol/limits.ts";
import type { ToolPrefix } from "../../src/protocol/names.ts";
import type { WorkerEvent } from "../../src/protocol/types.ts";
import type { PublishedTool } from "../cache/catalog-snapshot.ts";
import type { CacheEntry } from "../cache/entry.ts";
import type { PublishTask } from "../cache/publish.ts";
import type { CachePool } from "./cache-pool.ts";
import { catalogSettings } from "./catalog-settings.ts";
import { exposureOf, namesInRules } from "./config/exposure.ts";
import type { Settings } from "./config/settings.ts";
import { isNothing, removedSince } from "./publication.ts";
import { offeredTools } from "./resources/tools.ts";
import type { Server } from "./server.ts";

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
  emit: (event: WorkerEvent) => void;
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
  /** Settles when everything told so far is published; it may not be stored yet. */
  flush(): Promise<void>;
  /** The session ends: what was listed and not stored yet is stored, but no longer sent. */
  finish(): Promise<void>;
  /** Of the snapshot that main has been sent, or had from the start. */
  readonly checksum: number | undefined;
}

const DESCRIPTION_CHARS = 250;
/** For codemode scripts and `tool_search`, which show or rank all of it. */
const INSTRUCTIONS_CHARS = 4_000;
/** The index reads no more of it. */
const ABOUT_CHARS = 600;

/** What a server is for, in a line: its instructions may be a Markdown page. */
const firstLine = (text: string | undefined): string | undefined =>
  text
    ?.trim()
    .split("\n", 1)[0]
    ?.replace(/^#+\s*/, "")
    .slice(0, DESCRIPTION_CHARS);

export const prefixOf = (server: Server, settings: Settings): ToolPrefix =>
  server.definition.toolPrefix ?? settings.toolPrefix;

/** What becomes of each tool under the rules of its server: hidden ones are left out, direct ones marked. */
export function exposedTools(server: Server, settings: Settings): PublishedTool[] {
  const prefix = prefixOf(server, settings);
  return offeredTools(server).flatMap((tool) => {
    const names = namesInRules(server.name, tool.name, prefix);
    const exposure = exposureOf(tool.name, server.definition, settings.directTools, names);
    return exposure === "hidden" ? [] : [{ ...tool, direct: exposure === "direct" }];
  });
}

export function createCatalogPublisher(options: CatalogOptions): CatalogPublisher {
  /** Listed, and not known to be stored. */
  const fresh = new Set<Server>();
  /** About names, as the user has been told. */
  const told = new Set<string>();
  let used: Record<string, string> = {};
  let storing: Promise<void> = Promise.resolve();
  let keeping: Promise<void> = Promise.resolve();
  let checksum = options.knownChecksum;
  let timer: NodeJS.Timeout | undefined;
  let publishing: Promise<void> | undefined;
  let again = false;
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
    const servers = options
      .servers()
      .filter((server) => server.definition.enabled)
      .map((server) => {
        const instructions = server.instructions?.trim().slice(0, INSTRUCTIONS_CHARS);
        const words = [server.definition.description, server.instructions].filter(Boolean);
        const description = firstLine(words[0]);
        return {
          name: server.name,
          project: server.definition.project,
          toolsKnown: server.tools !== undefined,
          ...(description ? { description } : {}),
          ...(words.length > 0 ? { about: words.join("\n").slice(0, ABOUT_CHARS) } : {}),
          ...(instructions ? { instructions } : {}),
          prefix: prefixOf(server, settings),
          tools: exposedTools(server, settings),
        };
      });
    return { servers, settings: catalogSettings(settings, options.configFiles()) };
  };

  /** Each line once, and none at a start that finds what the last one found. */
  const tellNames = (lines: readonly string[]): void => {
    for (const text of lines) {
      if (told.has(text)) continue;
      told.add(text);
      options.emit({
        type: "notice",
        generation: options.generation,
        text: `MCP tools of ${text}`,
        level: "warning",
      });
    }
  };

  const publish = async (): Promise<void> => {
    do {
      again = false;
      const task = toTask();
      storing = storing.then(store);
      // As after an edit of a timeout: the index of all tools need not be built to find that nothing is new.
      const removed = published && !isLess ? removedSince(published, task) : undefined;
      if (removed && isNothing(removed)) continue;
      const known = isLess ? undefined : checksum;
      const path = options.snapshotPath;
      const stored = known === undefined ? {} : { stored: { path, checksum: known } };
      const result = await options.cache.publish({ ...task, ...stored });
      if (!result) continue;
      published = task;
      isLess = false;
      checksum = result.checksum;
      const { snapshot } = result;
      const isNew = checksum !== known;
      // Main is given the bytes themselves.
      const kept = { path, isNew, ...(snapshot ? { snapshot: snapshot.slice() } : {}) };
      keeping = keeping.then(() => options.cache.keepSnapshot(kept));
      if (!snapshot || !isNew || stopped) continue;
      tellNames(result.notices);
      options.emit({ type: "catalog", generation: options.generation, snapshot });
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
      while (publishing) await publishing;
    },
    async finish() {
      stopped = true;
      const due = timer !== undefined && fresh.size > 0;
      clearTimeout(timer);
      timer = undefined;
      if (due) start();
      while (publishing) await publishing;
      await keeping;
      await storing;
      // The last moment for what could not be stored when it was new.
      if (fresh.size > 0) await store();
    },
  };
}
