/**
 * Keeps main's catalog current: gathers changes for a moment, lets the cache worker store them and build
 * the snapshot, and sends it on. One publication at a time; changes meanwhile make one more.
 */

import { LIMITS } from "../../src/protocol/limits.ts";
import type { CatalogSettings } from "../../src/protocol/snapshot.ts";
import type { WorkerEvent } from "../../src/protocol/types.ts";
import type { CacheEntry } from "../cache/metadata-cache.ts";
import type { PublishTask } from "../cache/publish.ts";
import type { CachePool } from "./cache-pool.ts";
import type { Server } from "./server.ts";

export interface CatalogOptions {
  generation: number;
  cachePath: string;
  snapshotPath: string;
  knownChecksum: number | undefined;
  servers: () => readonly Server[];
  settings: () => CatalogSettings;
  hashOf: (server: string) => string;
  cache: CachePool;
  emit: (event: WorkerEvent) => void;
}

export interface CatalogPublisher {
  /** `server` listed its tools; without a server only the set of servers may have changed. */
  changed(server?: Server): void;
  /** Settles when everything told so far is published. */
  flush(): Promise<void>;
  /** The session ends: what was listed and not stored yet is stored, but no longer sent. */
  finish(): Promise<void>;
  /** Of the snapshot that main has been sent, or had from the start. */
  readonly checksum: number | undefined;
}

const DESCRIPTION_CHARS = 250;
/** The index reads no more of it. */
const ABOUT_CHARS = 600;

/** What a server is for, in a line: its instructions may be a Markdown page. */
const firstLine = (text: string | undefined): string | undefined =>
  text
    ?.trim()
    .split("\n", 1)[0]
    ?.replace(/^#+\s*/, "")
    .slice(0, DESCRIPTION_CHARS);

export function createCatalogPublisher(options: CatalogOptions): CatalogPublisher {
  const fresh = new Set<Server>();
  let checksum = options.knownChecksum;
  let timer: NodeJS.Timeout | undefined;
  let publishing: Promise<void> | undefined;
  let again = false;
  let stopped = false;

  const toEntry = (server: Server): CacheEntry => ({
    configHash: options.hashOf(server.name),
    tools: server.tools ?? [],
    resources: [],
    ...(server.instructions === undefined ? {} : { instructions: server.instructions }),
    cachedAt: Date.now(),
  });

  const toTask = (): PublishTask => {
    const entries = Object.fromEntries([...fresh].map((server) => [server.name, toEntry(server)]));
    fresh.clear();
    const servers = options
      .servers()
      .filter((server) => server.definition.enabled)
      .map((server) => {
        const words = [server.definition.description, server.instructions].filter(Boolean);
        const description = firstLine(words[0]);
        return {
          name: server.name,
          project: server.definition.project,
          ...(description ? { description } : {}),
          ...(words.length > 0 ? { about: words.join("\n").slice(0, ABOUT_CHARS) } : {}),
          tools: server.tools ?? [],
        };
      });
    const { cachePath, snapshotPath } = options;
    return {
      cachePath,
      snapshotPath,
      entries,
      servers,
      settings: options.settings(),
      knownChecksum: checksum,
    };
  };

  const publish = async (): Promise<void> => {
    do {
      again = false;
      const result = await options.cache.publish(toTask());
      if (!result) continue;
      checksum = result.checksum;
      if (!result.snapshot || stopped) continue;
      options.emit({ type: "catalog", generation: options.generation, snapshot: result.snapshot });
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
    changed(server) {
      if (stopped) return;
      if (server) fresh.add(server);
      timer ??= setTimeout(start, LIMITS.catalogDebounceMs);
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
    },
  };
}
