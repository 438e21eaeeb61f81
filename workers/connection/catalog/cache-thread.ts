/**
 * The thread of the cache worker: a piscina pool of at most one thread that stops when idle. Owns the pool, and what
 * becomes of tasks whose thread ends under them. Knows no task by name. Called by: cache-worker.ts.
 */
import { fileURLToPath } from "node:url";
import type { Piscina } from "piscina";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

/** Tasks come in bursts, and V8 keeps the memory of a thread for 8 s after its end. */
const IDLE_MS = 1_000;
/** Memory for new objects. Without this limit V8 takes ten times as much for the same tasks in the same time. */
const YOUNG_MEBIBYTES = 4;
/** A task that waits for the lock of the cache file must not keep a snapshot waiting. */
const TASKS_AT_A_TIME = 4;
/** Threads that may end under one task before the task is given up: the task itself may be what ends them. */
const LOST_THREADS = 2;

/** Path of the worker's file: raw TypeScript from a checkout, one bundled file from the package. */
export const cacheFile = (): string => {
  const raw = import.meta.url.endsWith(".ts");
  return fileURLToPath(new URL(raw ? "../../cache.ts" : "./cache.js", import.meta.url));
};

export interface ThreadOptions {
  /** Path of the worker's file. */
  file?: string;
  heapMebibytes?: number;
  /** Folder of Node's compile cache, if the environment does not name it. */
  compileCache?: string | undefined;
  /** Something failed outside any task. */
  onError: (error: unknown) => void;
}

/** Whether the thread ended under the task, and not the task by itself. */
export const isThreadEnd = (error: unknown): boolean =>
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

export class CacheThread {
  readonly #options: ThreadOptions;
  #pool: Piscina | undefined;
  #isClosed = false;
  /** Pools whose thread cannot be loaded: their tasks are not run again, but the next task opens a new pool. */
  readonly #unloadable = new WeakSet<Piscina>();

  constructor(options: ThreadOptions) {
    this.#options = options;
  }

  /** Runs the task again if the thread ends: that takes all tasks along, though only one of them was too much. */
  async run<T>(name: string, task: unknown): Promise<T> {
    for (let lost = 0; ; lost++) {
      try {
        return await this.runOnce<T>(name, task);
      } catch (error) {
        if (!(error instanceof LostThread) || lost === LOST_THREADS || this.#isClosed) throw error;
      }
    }
  }

  /** Throws what the task throws, or why its thread ended. The signal ends the thread. */
  async runOnce<T>(name: string, task: unknown, signal?: AbortSignal): Promise<T> {
    const used = await this.#open();
    try {
      return (await used.run(task, { name, ...(signal ? { signal } : {}) })) as T;
    } catch (error) {
      // In a pool whose thread has ended, waiting tasks would wait until another task is added.
      if (isThreadEnd(error)) this.#discard(used);
      throw this.#unloadable.has(used) || !isThreadEnd(error) ? error : new LostThread(error);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pool?.destroy();
  }

  async #open(): Promise<Piscina> {
    // Loaded with the first task, because the first plan does not need the library.
    const { Piscina } = await import("piscina");
    if (this.#pool) return this.#pool;
    const { file = cacheFile(), heapMebibytes = LIMITS.workerHeapMebibytes, compileCache } = this.#options;
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
    // The thread cannot be loaded. Without a listener the error would end the connection worker, and the pool would try
    // for ever while its tasks wait: the tasks are given up with the pool, and the next task opens a new one.
    opened.on("error", (error) => {
      this.#options.onError(error);
      this.#unloadable.add(opened);
      this.#discard(opened);
    });
    this.#pool = opened;
    return opened;
  }

  /** Gives the pool up with its thread and all its tasks. */
  #discard(used: Piscina): void {
    if (this.#pool === used) this.#pool = undefined;
    used.destroy().catch(this.#options.onError);
  }
}
