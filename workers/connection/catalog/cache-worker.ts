/**
 * The cache worker as the connection worker sees it: its tasks by name. A task that fails is logged and answered with
 * "nothing known", because a session must go on without its cache. Small tasks run on this thread, because a thread for
 * them would cost each start of Pi 45 ms of processor time and 20 MB. The others run on a piscina pool of at most one
 * thread, which stops when idle; a thread that dies, or that a publication holds for too long, is replaced, and its other
 * tasks are run again. Must not: run a task here that makes more of its input than bytes, as `publish` does, which works on
 * schemas of servers.
 */

import { fileURLToPath, pathToFileURL } from "node:url";
import type { Piscina } from "piscina";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { nodeFiles } from "../../shared/files/file-system.ts";
import { withoutTools } from "../../shared/listed.ts";
import { endIfFileGone, type Log } from "../../shared/log.ts";
import { OwnFile } from "../../shared/own-file.ts";
import { abortable } from "../../shared/pace/abort.ts";
import { Recent } from "../../shared/pace/pace.ts";
import type {
  CacheAnswer,
  CacheQuery,
  KeepTask,
  PublishResult,
  PublishTask,
  StoreResult,
  StoreTask,
} from "../../shared/tasks.ts";

/** A cache file up to this size is parsed in about 20 ms. */
const FILE_BYTES = 2 * 1024 * 1024;
/** Characters in the texts and keys of a task: about 3,000 tools. */
const CHARACTERS = 2 * 1024 * 1024;
/** Objects, lists and other values without text count as this many characters. */
const VALUE_CHARACTERS = 8;

/** Whether the value has at most `characters`. Looks at no more than that. */
export function isLight(value: unknown, characters = CHARACTERS): boolean {
  let left = characters;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    left -= typeof next === "string" ? next.length : VALUE_CHARACTERS;
    if (left < 0) return false;
    if (typeof next !== "object" || next === null) continue;
    for (const key in next) {
      left -= key.length;
      if (left < 0) return false;
      waiting.push((next as Record<string, unknown>)[key]);
    }
  }
  return true;
}

/** A file that is missing is small. A file that cannot be looked at is a matter of the task. */
async function isSmallFile(path: string): Promise<boolean> {
  const found = await nodeFiles.find(path).catch(() => undefined);
  return (found?.file?.bytes ?? 0) <= FILE_BYTES;
}

const IS_SMALL: Readonly<Record<string, (task: never) => boolean | Promise<boolean>>> = {
  hashDefinitions: (definitions: Record<string, unknown>[]) => isLight(definitions),
  readLines: () => true,
  readCache: ({ path }: CacheQuery) => isSmallFile(path),
  storeEntries: (task: StoreTask) => isLight(task) && isSmallFile(task.path),
  publishStored: (task: object) => isLight(task),
  // A snapshot that is new comes from the thread, which is up.
  keepSnapshot: ({ isNew }: KeepTask) => !isNew,
};

type Tasks = Record<string, (task: unknown) => Promise<unknown>>;

/**
 * The task to run here; undefined if it is not small, or its code cannot be loaded: then the thread reports why. The task
 * throws what it throws on the thread. `file`: path of the cache worker's file, which exports the tasks.
 */
export async function findSmall<T>(
  file: string,
  name: string,
  task: unknown,
): Promise<(() => Promise<T>) | undefined> {
  if (!(await IS_SMALL[name]?.(task as never))) return undefined;
  const tasks = await (import(pathToFileURL(file).href) as Promise<Tasks>).catch(() => undefined);
  return tasks && (async () => (await tasks[name]?.(task)) as T);
}

/** Tasks come in bursts, and V8 keeps the memory of a thread for 8 s after its end. */
const IDLE_MS = 1_000;
/** Memory for new objects. Without this limit V8 takes ten times as much for the same tasks in the same time. */
const YOUNG_MEBIBYTES = 4;
/** A task that waits for the lock of the cache file must not keep a snapshot waiting. */
const TASKS_AT_A_TIME = 4;
/** Threads that may end under one task before the task is given up: the task itself may be what ends them. */
const LOST_THREADS = 2;

/** Path of the worker's file: raw TypeScript from a checkout, one bundled file from the package. */
const workerFile = (): string => {
  const raw = import.meta.url.endsWith(".ts");
  return fileURLToPath(new URL(raw ? "../../cache.ts" : "./cache.js", import.meta.url));
};

interface ThreadOptions {
  /** Path of the worker's file. Rejects if it is gone. */
  find: () => Promise<string>;
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

/** Nobody needs the task any more, so no thread was started for it. */
class SessionEnded extends Error {}

class CacheThread {
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

  /**
   * For a task that a thread which makes a snapshot can have too. Runs `otherwise` if the thread ends: a new one takes long on a
   * busy machine, and what is small needs none.
   */
  runOr<T>(name: string, task: unknown, otherwise: () => Promise<T>): Promise<T> {
    return this.runOnce<T>(name, task).catch((error: unknown) => {
      if (error instanceof LostThread) return otherwise();
      throw error;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pool?.destroy();
  }

  async #open(): Promise<Piscina> {
    const filename = await this.#options.find();
    // To start a thread takes 15 ms, for which a session that ends right after its start would wait.
    this.#refuseIfClosed();
    // Loaded with the first task, because the first plan does not need the library.
    const { Piscina } = await import("piscina");
    this.#refuseIfClosed();
    const before = this.#pool;
    if (before?.options.filename === filename) return before;
    const { heapMebibytes = LIMITS.workerHeapMebibytes, compileCache } = this.#options;
    const opened = new Piscina({
      filename,
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
    // An update has replaced its file: what it runs is of this version still.
    before?.close().catch(this.#options.onError);
    return opened;
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw new SessionEnded();
  }

  /** Gives the pool up with its thread and all its tasks. */
  #discard(used: Piscina): void {
    if (this.#pool === used) this.#pool = undefined;
    used.destroy().catch(this.#options.onError);
  }
}

/** Number of problems with files that are remembered, so that each is logged once. */
const PROBLEMS = 200;
export interface PublishLimits {
  /** After this time the thread is ended, whatever it does. */
  limitMs: number;
  /** Ends the thread at once: nobody waits any longer. One that has fired starts none, for which a store would wait. */
  signal?: AbortSignal;
}

export interface CacheWorker {
  /** Starts the thread, because a task is expected in a moment. */
  warm(): void;
  /** Answers the hashes by position; an empty list if the task failed: then nothing is known and nothing is stored. */
  hashDefinitions(definitions: Record<string, unknown>[]): Promise<string[]>;
  /** Answers no entries if the task failed; the log says why. */
  readCache(query: CacheQuery): Promise<Omit<CacheAnswer, "problems">>;
  /** Answers whether everything is in the file. If not, the log says why. */
  storeEntries(task: StoreTask): Promise<boolean>;
  /** Answers undefined if the task failed or took too long; the log says why. */
  publish(task: PublishTask, limits: PublishLimits): Promise<PublishResult | undefined>;
  /** Keeps the file of a snapshot for the next start. If the task failed, the log says why. */
  keepSnapshot(task: KeepTask): Promise<void>;
  close(): Promise<void>;
}

/** `compileCache`: folder of Node's compile cache, if the environment does not name it. */
export function createCacheWorker(
  log: Log,
  compileCache?: string,
  { file = workerFile(), ...limits }: { file?: string } & Pick<ThreadOptions, "heapMebibytes"> = {},
): CacheWorker {
  const failed = (error: unknown): void => {
    log.error(`cache worker failed: ${messageOf(error)}`);
    void endIfFileGone(error, log);
  };
  const own = new OwnFile(file);
  own.remember();
  /** Path of the file that belongs to this worker, wherever an update has left it. */
  const find = async (): Promise<string> => {
    if (!own.isKnown()) await own.find();
    return own.path;
  };
  const thread = new CacheThread({ ...limits, find, compileCache, onError: failed });
  /** Whether the newest publication needs the thread; false once it has ended. */
  let needsThread = Promise.resolve(false);

  const run = async <T>(name: string, task: unknown): Promise<T> => {
    const here = await findSmall<T>(await find(), name, task);
    return here ? here() : thread.run<T>(name, task);
  };
  /** Undefined if the snapshot has to be made, or only the thread can tell. */
  const publishStored = async (task: PublishTask): Promise<PublishResult | undefined> => {
    if (!task.stored) return undefined;
    const stored = { ...task, servers: task.servers.map(withoutTools) };
    const here = await findSmall<PublishResult | undefined>(await find(), "publishStored", stored);
    return here?.();
  };

  /** Answers what the task answers, or `otherwise` if the task failed, which is logged. */
  const attempt = async <T>(otherwise: T, task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (error) {
      if (!(error instanceof SessionEnded)) failed(error);
      return otherwise;
    }
  };

  // Each problem is logged once, because a full disk fails again at every change.
  const reported = new Recent(PROBLEMS);
  const logOnce = (problems: readonly string[]): void => {
    for (const problem of problems) if (reported.isNew(problem)) log.warn(problem);
  };
  return {
    warm: () => void attempt([], () => thread.run<string[]>("hashDefinitions", [])),
    hashDefinitions: (definitions) => attempt([], () => run<string[]>("hashDefinitions", definitions)),
    readCache: (query) =>
      attempt({ entries: {}, used: {} }, async () => {
        const lines = await findSmall<CacheAnswer | undefined>(await find(), "readLines", query);
        const { problems, ...found } = (await lines?.()) ?? (await run<CacheAnswer>("readCache", query));
        logOnce(problems);
        return found;
      }),
    storeEntries: (task) =>
      attempt(false, async () => {
        const store = () => run<StoreResult>("storeEntries", task);
        const done = (await needsThread) ? thread.runOr("storeEntries", task, store) : store();
        const { stored, problems } = await done;
        logOnce(problems);
        return stored;
      }),
    publish: async (task, { limitMs, signal }) => {
      if (signal?.aborted) return undefined;
      const limit = AbortSignal.timeout(limitMs);
      const end = signal ? AbortSignal.any([signal, limit]) : limit;
      // The snapshot's file may lie on a disk that hangs.
      const stored = attempt(undefined, () =>
        abortable(publishStored(task), end, "The look at the snapshot"),
      );
      const needs = stored.then((result) => result === undefined);
      needsThread = needs;
      const result = await attempt(
        undefined,
        async () => (await stored) ?? (await thread.runOnce<PublishResult>("publish", task, end)),
      );
      if (needsThread === needs) needsThread = Promise.resolve(false);
      if (!result) return undefined;
      logOnce(result.problems);
      // Without a new snapshot no tool was read.
      const count = (): number => task.servers.reduce((sum, server) => sum + server.tools.length, 0);
      const done = result.snapshot
        ? `${count()} tools of ${task.servers.length} servers indexed`
        : `the tools of ${task.servers.length} servers as stored`;
      log.write("info", done, `cache#${result.threadId}`);
      return result;
    },
    keepSnapshot: (task) =>
      attempt(undefined, async () => {
        const problems = await run<string[]>("keepSnapshot", task);
        logOnce(problems);
        if (task.isNew && problems.length === 0) log.info("snapshot written");
      }),
    close: () => thread.close(),
  };
}
