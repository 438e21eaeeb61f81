/**
 * The cache worker as the connection worker sees it: its tasks by name. A task that fails is logged and answered with
 * "nothing known", because a session must go on without its cache. Small tasks run here (small-tasks.ts), the others on a
 * thread: one that dies, or that a publication holds for too long, is replaced, and its other tasks are run again
 * (cache-thread.ts).
 */
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import type { Log } from "../../shared/log.ts";
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
import { CacheThread, cacheFile, type ThreadOptions } from "./cache-thread.ts";
import { createSmallTasks } from "./small-tasks.ts";

/** Number of problems with files that are remembered, so that each is logged once. */
const PROBLEMS = 200;
export interface PublishLimits {
  /** After this time the thread is ended, whatever it does. */
  limitMs: number;
  /** Ends the thread at once: nobody waits any longer. */
  signal?: AbortSignal;
}

export interface CachePool {
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
export function createCachePool(
  log: Log,
  compileCache?: string,
  options: Pick<ThreadOptions, "file" | "heapMebibytes"> = {},
): CachePool {
  const failed = (error: unknown): void => log.error(`cache worker failed: ${messageOf(error)}`);
  const { file = cacheFile(), ...limits } = options;
  const thread = new CacheThread({ ...limits, file, compileCache, onError: failed });
  const small = createSmallTasks(file);
  /** Whether the newest publication needs the thread; false once it has ended. */
  let needsThread = Promise.resolve(false);

  const warm = (): void => {
    thread.run("hashDefinitions", []).catch(failed);
  };
  const run = async <T>(name: string, task: unknown): Promise<T> => {
    const here = await small.find<T>(name, task);
    return here ? here() : thread.run<T>(name, task);
  };
  /** Undefined if the snapshot has to be made, or only the thread can tell. */
  const publishStored = async (task: PublishTask): Promise<PublishResult | undefined> => {
    const here = task.stored && (await small.find<PublishResult | undefined>("publishStored", task));
    return here?.();
  };

  /** Answers what the task answers, or `otherwise` if the task failed, which is logged. */
  const attempt = async <T>(otherwise: T, task: () => Promise<T>): Promise<T> => {
    try {
      return await task();
    } catch (error) {
      failed(error);
      return otherwise;
    }
  };

  // Each problem is logged once, because a full disk fails again at every change.
  const reported = new Recent(PROBLEMS);
  const logOnce = (problems: readonly string[]): void => {
    for (const problem of problems) if (reported.isNew(problem)) log.warn(problem);
  };
  return {
    warm,
    hashDefinitions: (definitions) => attempt([], () => run<string[]>("hashDefinitions", definitions)),
    readCache: (query) =>
      attempt({ entries: {}, used: {} }, async () => {
        const { problems, ...found } = await run<CacheAnswer>("readCache", query);
        logOnce(problems);
        return found;
      }),
    storeEntries: (task) =>
      attempt(false, async () => {
        // A thread that makes a snapshot can have this work too.
        const storing = (await needsThread)
          ? thread.run<StoreResult>("storeEntries", task)
          : run<StoreResult>("storeEntries", task);
        const { stored, problems } = await storing;
        logOnce(problems);
        return stored;
      }),
    publish: async (task, { limitMs, signal }) => {
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
      const tools = task.servers.reduce((sum, server) => sum + server.tools.length, 0);
      const done = `${tools} tools of ${task.servers.length} servers ${result.snapshot ? "indexed" : "as stored"}`;
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
