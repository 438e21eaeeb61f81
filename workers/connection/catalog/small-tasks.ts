/**
 * Small tasks of the cache worker, which run on this thread: a thread for them would cost each start of Pi 45 ms of
 * processor time and 20 MB. Owns what counts as small. Must not: run a task that makes more of its input than bytes, as
 * `publish` does, which works on schemas of servers. Called by: cache-worker.ts.
 */
import { pathToFileURL } from "node:url";
import { nodeFiles } from "../../shared/files/file-system.ts";
import type { CacheQuery, KeepTask, StoreTask } from "../../shared/tasks.ts";

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
  readCache: ({ path }: CacheQuery) => isSmallFile(path),
  storeEntries: (task: StoreTask) => isLight(task) && isSmallFile(task.path),
  publishStored: (task: object) => isLight(task),
  // A snapshot that is new comes from the thread, which is up.
  keepSnapshot: ({ isNew }: KeepTask) => !isNew,
};

type Tasks = Record<string, (task: unknown) => Promise<unknown>>;

/** `file`: path of the cache worker's file, which exports the tasks. */
export function createSmallTasks(file: string) {
  let loading: Promise<Tasks> | undefined;
  const load = (): Promise<Tasks> => {
    loading ??= import(pathToFileURL(file).href) as Promise<Tasks>;
    return loading;
  };
  return {
    /**
     * The task to run here; undefined if it is not small, or its code cannot be loaded: then the thread reports why. The
     * task throws what it throws on the thread.
     */
    find: async <T>(name: string, task: unknown): Promise<(() => Promise<T>) | undefined> => {
      if (!(await IS_SMALL[name]?.(task as never))) return undefined;
      const tasks = await load().catch(() => undefined);
      return tasks && (async () => (await tasks[name]?.(task)) as T);
    },
  };
}
