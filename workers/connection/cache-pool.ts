/**
 * The cache worker as the connection worker sees it: a piscina pool of at most one thread that stops
 * when idle. A task that fails is logged and answered with "nothing known": a session never ends for
 * want of its cache.
 */
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";
import { messageOf } from "../../src/protocol/errors.ts";
import type { CacheEntry } from "../cache/metadata-cache.ts";
import type { PublishResult, PublishTask } from "../cache/publish.ts";
import type { Log } from "./log.ts";

const IDLE_MS = 5_000;

/** Raw TypeScript from a checkout, one bundled file from the package. */
const workerFile = (): string => {
  const raw = import.meta.url.endsWith(".ts");
  return fileURLToPath(new URL(raw ? "../cache.ts" : "./cache.js", import.meta.url));
};

export interface CachePool {
  hashDefinitions(definitions: Record<string, unknown>[]): Promise<string[]>;
  readCache(path: string, hashes: Record<string, string>): Promise<Record<string, CacheEntry>>;
  /** Undefined where it failed; the log says why. */
  publish(task: PublishTask): Promise<PublishResult | undefined>;
  close(): Promise<void>;
}

export function createCachePool(log: Log): CachePool {
  let pool: Piscina | undefined;
  const run = async <T>(name: string, task: unknown): Promise<T> => {
    pool ??= new Piscina({ filename: workerFile(), minThreads: 0, maxThreads: 1, idleTimeout: IDLE_MS });
    return (await pool.run(task, { name })) as T;
  };
  return {
    hashDefinitions: (definitions) => run("hashDefinitions", definitions),
    readCache: async (path, hashes) => {
      const found = await run<{ entries: Record<string, CacheEntry>; problem?: string }>("readCache", {
        path,
        hashes,
      });
      if (found.problem !== undefined) log.warn(`${path} is not used: ${found.problem}`);
      return found.entries;
    },
    publish: async (task) => {
      try {
        const result = await run<PublishResult>("publish", task);
        for (const problem of result.problems) log.warn(problem);
        const tools = task.servers.reduce((sum, server) => sum + server.tools.length, 0);
        log.write(
          "info",
          `${tools} tools of ${task.servers.length} servers ${result.snapshot ? "indexed, snapshot written" : "unchanged"}`,
          `cache#${result.threadId}`,
        );
        return result;
      } catch (error) {
        log.error(`cache worker failed: ${messageOf(error)}`);
        return undefined;
      }
    },
    close: async () => {
      await pool?.destroy();
    },
  };
}
