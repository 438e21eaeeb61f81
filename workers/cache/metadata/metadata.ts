/**
 * `mcp-cache.json`: what servers said about themselves, so that the next start knows their tools without connecting.
 * Owns the file and two tasks: read the entries of a configuration, and store new ones. Must not: throw (anything wrong
 * with the file is a problem, one line for the log, and the session goes on), or lose what others stored. Called by the
 * cache worker (workers/cache.ts). To add a field to an entry: workers/shared/tasks.ts and entry.ts.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { writeFileAtomic } from "../../shared/files/atomic-file.ts";
import { nodeFiles, reasonOf } from "../../shared/files/file-system.ts";
import { keepAside, sweepTemps } from "../../shared/files/housekeeping.ts";
import { LOCK_TIMES, type LockTimes, withLock } from "../../shared/files/lock.ts";
import type { CacheAnswer, CacheQuery, StoreResult, StoreTask } from "../../shared/tasks.ts";
import { hashesOf } from "./adapter-hash.ts";
import { type CacheAccess, type CacheFile, formatCache, loadCache } from "./file.ts";
import { changeSlots, findEntry, type Slots } from "./slots.ts";

/** What a task uses of the system; a test passes its own. */
export interface CacheContext extends CacheAccess {
  now: () => number;
  lockTimes: LockTimes;
}

const realWorld: CacheContext = {
  files: nodeFiles,
  limitBytes: LIMITS.cacheBytes,
  now: Date.now,
  lockTimes: LOCK_TIMES,
};

const OWNER_MAY_WRITE = 0o200;
/** Attempts to write while writers that ignore the lock keep changing the file. */
const ATTEMPTS = 5;

/** The task `readCache`. Never throws. */
export async function readCache(query: CacheQuery, context: CacheContext = realWorld): Promise<CacheAnswer> {
  const cache = await loadCache(query.path, context);
  if (cache.state !== "usable") return { entries: {}, used: {}, problems: [cache.problem] };
  const nowMs = context.now();
  const found = Object.entries(query.definitions).flatMap(([server, definition]) => {
    const hit = findEntry(cache.slots, server, hashesOf(definition), nowMs);
    return hit ? [{ server, ...hit }] : [];
  });
  return {
    entries: Object.fromEntries(found.map(({ server, entry }) => [server, entry])),
    used: Object.fromEntries(
      found.filter(({ useDue }) => useDue).map(({ server, entry }) => [server, entry.configHash]),
    ),
    problems: [],
  };
}

/** Thrown if another writer replaced the file between our read and our write. */
class Overtaken extends Error {}

/** The slots that the file must hold after the task, or undefined if it holds them already. */
const nextSlots = (cache: CacheFile, task: StoreTask, nowMs: number): Slots | undefined =>
  changeSlots(cache.state === "usable" ? cache.slots : new Map(), task, nowMs);

/** One read, merge and write under the lock. Throws `Overtaken`, and what the file system throws. */
async function mergeOnce(
  task: StoreTask,
  seen: CacheFile,
  context: CacheContext,
  holds: () => Promise<boolean>,
): Promise<StoreResult> {
  const { files, now, limitBytes } = context;
  const cache = await loadCache(task.path, context, seen);
  if (cache.state === "closed") return { stored: false, problems: [cache.problem] };
  const slots = nextSlots(cache, task, now());
  const problems = cache.state === "corrupt" ? [cache.problem] : [];
  if (!slots) return { stored: true, problems };
  const text = formatCache(slots, cache.state === "usable" ? cache.rest : {});
  if (Buffer.byteLength(text) > limitBytes) throw new Error(`it would exceed ${limitBytes / 2 ** 20} MiB`);
  const beforeReplace = async (target: string): Promise<void> => {
    // Other adapters ignore the lock, and a process that was stopped for long has lost it.
    if (!(await holds()) || (await loadCache(task.path, context, cache)) !== cache) throw new Overtaken();
    if (cache.state === "corrupt" && cache.kept) await keepAside(target, files, now());
  };
  await writeFileAtomic(task.path, text, { files, beforeReplace });
  return { stored: true, problems };
}

async function mergeUnderLock(
  task: StoreTask,
  seen: CacheFile,
  context: CacheContext,
  holds: () => Promise<boolean>,
): Promise<StoreResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await mergeOnce(task, seen, context, holds);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      if (attempt === ATTEMPTS || !(await holds())) throw new Error("other processes keep changing it");
    }
  }
}

/** The task `storeEntries`. Never throws. */
export async function storeEntries(task: StoreTask, context: CacheContext = realWorld): Promise<StoreResult> {
  const { files, now } = context;
  const seen = await loadCache(task.path, context);
  if (seen.state === "closed") return { stored: false, problems: [seen.problem] };
  try {
    // Most often nothing is new: then neither the lock nor a write is needed.
    if (!nextSlots(seen, task, now())) return { stored: true, problems: [] };
    const { target, file } = await files.find(task.path);
    if (file && (file.mode & OWNER_MAY_WRITE) === 0) throw new Error("it is read-only");
    const result = await withLock(target, { files, times: context.lockTimes }, (holds) =>
      mergeUnderLock(task, seen, context, holds),
    );
    await sweepTemps(target, files, now());
    return result;
  } catch (error) {
    return { stored: false, problems: [`${task.path} could not be written: ${reasonOf(error)}`] };
  }
}
