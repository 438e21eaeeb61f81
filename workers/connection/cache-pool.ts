/**
 * The cache worker as the connection worker sees it: a piscina pool of at most one thread that stops
 * when idle. A task that fails is logged and answered with "nothing known": a session never ends for
 * want of its cache.
 */
import { fileURLToPath } from "node:url";
import type { Piscina } from "piscina";
import { messageOf } from "../../src/protocol/errors.ts";
import type { KeepTask } from "../cache/keep-snapshot.ts";
import type { CacheAnswer, CacheQuery, StoreResult, StoreTask } from "../cache/metadata-cache.ts";
import type { PublishResult, PublishTask } from "../cache/publish.ts";
import type { Log } from "./log.ts";

/** Tasks come in bursts, and V8 keeps the memory of a thread for 8 s after its end. */
const IDLE_MS = 1_000;
/** For new objects. Left alone V8 takes ten times as much for the same tasks in the same time. */
const YOUNG_MEBIBYTES = 4;
/** A task that waits for the lock of the cache file must not keep a snapshot waiting. */
const TASKS_AT_A_TIME = 4;

/** Raw TypeScript from a checkout, one bundled file from the package. */
const workerFile = (): string => {
  const raw = import.meta.url.endsWith(".ts");
  return fileURLToPath(new URL(raw ? "../cache.ts" : "./cache.js", import.meta.url));
};

export interface CachePool {
  /** Has the thread started by when the next task comes, which is expected in a moment. */
  warm(): void;
  /** By position; empty where it failed: then nothing is known and nothing is stored. */
  hashDefinitions(definitions: Record<string, unknown>[]): Promise<string[]>;
  /** Nothing known where it failed; the log says why. */
  readCache(query: CacheQuery): Promise<Omit<CacheAnswer, "problems">>;
  /** Whether everything is in the file. If not, the log says why. */
  storeEntries(task: StoreTask): Promise<boolean>;
  /** Undefined where it failed; the log says why. */
  publish(task: PublishTask): Promise<PublishResult | undefined>;
  /** Keeps the file of a snapshot for the next start. Where it failed, the log says why. */
  keepSnapshot(task: KeepTask): Promise<void>;
  close(): Promise<void>;
}

/** `compileCache`: folder of Node's compile cache, where the environment does not name it. */
export function createCachePool(log: Log, compileCache?: string): CachePool {
  let pool: Piscina | undefined;
  const told = new Set<string>();
  const openPool = async (): Promise<Piscina> => {
    // Loaded when it is needed: the first plan does not need it.
    const { Piscina } = await import("piscina");
    if (pool) return pool;
    const opened = new Piscina({
      filename: workerFile(),
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: TASKS_AT_A_TIME,
      idleTimeout: IDLE_MS,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEBIBYTES },
      ...(compileCache && {
        env: { ...(process.env as NodeJS.Dict<string>), NODE_COMPILE_CACHE: compileCache },
      }),
    });
    // A thread that cannot be loaded. Without a listener it would end the connection worker, and the pool
    // would try for ever while its tasks wait: they are given up with it, the next task tries anew.
    opened.on("error", (error) => {
      failed(error);
      if (pool === opened) pool = undefined;
      opened.destroy().catch(failed);
    });
    pool = opened;
    return opened;
  };
  const run = async <T>(name: string, task: unknown): Promise<T> =>
    (await (await openPool()).run(task, { name })) as T;
  /** Each problem once: a full disk is met again at every change. */
  const tell = (problems: readonly string[]): void => {
    for (const problem of problems) {
      if (!told.has(problem)) log.warn(problem);
      told.add(problem);
    }
  };
  const failed = (error: unknown): void => log.error(`cache worker failed: ${messageOf(error)}`);
  return {
    warm: () => {
      run("hashDefinitions", []).catch(failed);
    },
    hashDefinitions: async (definitions) => {
      try {
        return await run<string[]>("hashDefinitions", definitions);
      } catch (error) {
        failed(error);
        return [];
      }
    },
    readCache: async (query) => {
      try {
        const { problems, ...found } = await run<CacheAnswer>("readCache", query);
        tell(problems);
        return found;
      } catch (error) {
        failed(error);
        return { entries: {}, used: {} };
      }
    },
    storeEntries: async (task) => {
      try {
        const { stored, problems } = await run<StoreResult>("storeEntries", task);
        tell(problems);
        return stored;
      } catch (error) {
        failed(error);
        return false;
      }
    },
    publish: async (task) => {
      try {
        const result = await run<PublishResult>("publish", task);
        tell([...result.problems, ...result.repairs, ...result.notices]);
        const tools = task.servers.reduce((sum, server) => sum + server.tools.length, 0);
        const done = `${tools} tools of ${task.servers.length} servers ${result.snapshot ? "indexed" : "as stored"}`;
        log.write("info", done, `cache#${result.threadId}`);
        return result;
      } catch (error) {
        failed(error);
        return undefined;
      }
    },
    keepSnapshot: async (task) => {
      try {
        const problems = await run<string[]>("keepSnapshot", task);
        tell(problems);
        if (task.isNew && problems.length === 0) log.info("snapshot written");
      } catch (error) {
        failed(error);
      }
    },
    close: async () => {
      await pool?.destroy();
    },
  };
}
