/**
 * The cache worker as the connection worker sees it: a piscina pool of at most one thread that stops
 * when idle. A task that fails is logged and answered with "nothing known": a session never ends for
 * want of its cache. A thread that dies, or that a publication holds for too long, is replaced, and its
 * other tasks are run again.
 */
import { fileURLToPath } from "node:url";
import type { Piscina } from "piscina";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Log } from "../../shared/log.ts";
import { Recent } from "../../shared/recent.ts";
import type {
  CacheAnswer,
  CacheQuery,
  KeepTask,
  PublishResult,
  PublishTask,
  StoreResult,
  StoreTask,
} from "../../shared/tasks.ts";

/** Tasks come in bursts, and V8 keeps the memory of a thread for 8 s after its end. */
const IDLE_MS = 1_000;
/** For new objects. Left alone V8 takes ten times as much for the same tasks in the same time. */
const YOUNG_MEBIBYTES = 4;
/** A task that waits for the lock of the cache file must not keep a snapshot waiting. */
const TASKS_AT_A_TIME = 4;
/** Problems with files that are remembered, so that each is logged once. */
const PROBLEMS = 200;
/** Threads that one task may lose: it may be the one that ends them. */
const LOST_THREADS = 2;

/** Raw TypeScript from a checkout, one bundled file from the package. */
const workerFile = (): string => {
  const raw = import.meta.url.endsWith(".ts");
  return fileURLToPath(new URL(raw ? "../../cache.ts" : "./cache.js", import.meta.url));
};

export interface PublishLimits {
  /** Then the thread is ended, whatever it does. */
  limitMs: number;
  /** The same at once: nobody waits any longer. */
  signal?: AbortSignal;
}

export interface CachePool {
  /** Has the thread started by when the next task comes, which is expected in a moment. */
  warm(): void;
  /** By position; empty where it failed: then nothing is known and nothing is stored. */
  hashDefinitions(definitions: Record<string, unknown>[]): Promise<string[]>;
  /** Nothing known where it failed; the log says why. */
  readCache(query: CacheQuery): Promise<Omit<CacheAnswer, "problems">>;
  /** Whether everything is in the file. If not, the log says why. */
  storeEntries(task: StoreTask): Promise<boolean>;
  /** Undefined where it failed, or took too long; the log says why. */
  publish(task: PublishTask, limits: PublishLimits): Promise<PublishResult | undefined>;
  /** Keeps the file of a snapshot for the next start. Where it failed, the log says why. */
  keepSnapshot(task: KeepTask): Promise<void>;
  close(): Promise<void>;
}

/** Whether the thread ended under the task, rather than the task by itself. */
const isThreadEnd = (error: unknown): boolean =>
  error instanceof Error &&
  (error.name === "AbortError" ||
    ("code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY") ||
    /^(worker exited with code|Terminating worker thread)/.test(error.message));

/** The thread ended under a task. */
class LostThread extends Error {
  constructor(cause: unknown) {
    const detail =
      cause instanceof Error && cause.name === "AbortError" ? messageOf(cause.cause) : messageOf(cause);
    super(`its thread was ended: ${detail}`, { cause });
  }
}

export interface PoolOptions {
  /** The worker's. */
  file?: string;
  heapMebibytes?: number;
}

/** `compileCache`: folder of Node's compile cache, where the environment does not name it. */
export function createCachePool(
  log: Log,
  compileCache?: string,
  { file = workerFile(), heapMebibytes = LIMITS.workerHeapMebibytes }: PoolOptions = {},
): CachePool {
  let pool: Piscina | undefined;
  let isClosed = false;
  const failed = (error: unknown): void => log.error(`cache worker failed: ${messageOf(error)}`);
  /** Pools whose thread cannot be loaded: the next task may try anew, these do not. */
  const unloadable = new WeakSet<Piscina>();

  /** Gives the pool up with its thread and all its tasks. */
  const discard = (used: Piscina): void => {
    if (pool === used) pool = undefined;
    used.destroy().catch(failed);
  };
  const openPool = async (): Promise<Piscina> => {
    // Loaded when it is needed: the first plan does not need it.
    const { Piscina } = await import("piscina");
    if (pool) return pool;
    const opened = new Piscina({
      filename: file,
      minThreads: 0,
      maxThreads: 1,
      concurrentTasksPerWorker: TASKS_AT_A_TIME,
      idleTimeout: IDLE_MS,
      resourceLimits: {
        maxYoungGenerationSizeMb: YOUNG_MEBIBYTES,
        maxOldGenerationSizeMb: heapMebibytes,
      },
      ...(compileCache && {
        env: { ...(process.env as NodeJS.Dict<string>), NODE_COMPILE_CACHE: compileCache },
      }),
    });
    // A thread that cannot be loaded. Without a listener it would end the connection worker, and the pool
    // would try for ever while its tasks wait: they are given up with it, the next task tries anew.
    opened.on("error", (error) => {
      failed(error);
      unloadable.add(opened);
      discard(opened);
    });
    pool = opened;
    return opened;
  };

  /** Throws what the task throws, or why its thread ended. */
  const runOnce = async <T>(name: string, task: unknown, signal?: AbortSignal): Promise<T> => {
    const used = await openPool();
    try {
      return (await used.run(task, { name, ...(signal ? { signal } : {}) })) as T;
    } catch (error) {
      // Tasks that wait in a pool without a thread would wait for the next task.
      if (isThreadEnd(error)) discard(used);
      throw unloadable.has(used) || !isThreadEnd(error) ? error : new LostThread(error);
    }
  };
  /** A thread that ends takes all its tasks with it, though only one of them was too much for it. */
  const run = async <T>(name: string, task: unknown): Promise<T> => {
    for (let lost = 0; ; lost++) {
      try {
        return await runOnce<T>(name, task);
      } catch (error) {
        if (!(error instanceof LostThread) || lost === LOST_THREADS || isClosed) throw error;
      }
    }
  };
  /** What the task answers; `otherwise` where it failed, which is logged. */
  const attempt = async <T>(otherwise: T, task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (error) {
      failed(error);
      return otherwise;
    }
  };

  // Each problem once: a full disk is met again at every change.
  const told = new Recent(PROBLEMS);
  const tell = (problems: readonly string[]): void => {
    for (const problem of problems) if (told.isNew(problem)) log.warn(problem);
  };
  return {
    warm: () => {
      run("hashDefinitions", []).catch(failed);
    },
    hashDefinitions: (definitions) => attempt([], () => run<string[]>("hashDefinitions", definitions)),
    readCache: (query) =>
      attempt({ entries: {}, used: {} }, async () => {
        const { problems, ...found } = await run<CacheAnswer>("readCache", query);
        tell(problems);
        return found;
      }),
    storeEntries: (task) =>
      attempt(false, async () => {
        const { stored, problems } = await run<StoreResult>("storeEntries", task);
        tell(problems);
        return stored;
      }),
    publish: (task, { limitMs, signal }) =>
      attempt<PublishResult | undefined>(undefined, async () => {
        const limit = AbortSignal.timeout(limitMs);
        const result = await runOnce<PublishResult>(
          "publish",
          task,
          signal ? AbortSignal.any([signal, limit]) : limit,
        );
        tell(result.problems);
        const tools = task.servers.reduce((sum, server) => sum + server.tools.length, 0);
        const done = `${tools} tools of ${task.servers.length} servers ${result.snapshot ? "indexed" : "as stored"}`;
        log.write("info", done, `cache#${result.threadId}`);
        return result;
      }),
    keepSnapshot: (task) =>
      attempt(undefined, async () => {
        const problems = await run<string[]>("keepSnapshot", task);
        tell(problems);
        if (task.isNew && problems.length === 0) log.info("snapshot written");
      }),
    close: async () => {
      isClosed = true;
      await pool?.destroy();
    },
  };
}
