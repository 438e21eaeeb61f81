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
import { type Collected, collectDeposits, createDeposit, sweepDeposits } from "./deposits.ts";
import {
  type CacheAccess,
  type CacheBytes,
  loadCache,
  type NextFile,
  nextFile,
  readCacheBytes,
} from "./file.ts";
import { findEntry } from "./slots.ts";

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

interface Merge {
  /** The file as it was before the lock was taken. */
  seen: CacheBytes;
  /** The file behind any link. */
  target: string;
  /** Whether this process still has the lock. */
  holds: () => Promise<boolean>;
}

const sizeOf = (next: NextFile): number =>
  next.state === "closed" ? 0 : next.parts.reduce((bytes, { length }) => bytes + length, 0);

/** One read, merge and write under the lock. Throws `Overtaken`, and what the file system throws. */
async function mergeOnce(
  task: StoreTask,
  { seen, target, holds }: Merge,
  context: CacheContext,
): Promise<StoreResult> {
  const { files, now, limitBytes } = context;
  const read = await readCacheBytes(task.path, context, seen);
  if ("state" in read) return { stored: false, problems: [read.problem] };
  // The task comes last: its list is newer than one that waits since its depositor was killed.
  const nextWith = (others: readonly Collected[]): NextFile =>
    nextFile(task.path, read.bytes, [...others.map(({ changes }) => changes), task], now());
  let deposits = await collectDeposits(target, files, now());
  let next = nextWith(deposits);
  if (deposits.length > 0 && sizeOf(next) > limitBytes) {
    deposits = [];
    next = nextWith(deposits);
  }
  if (next.state === "closed") return { stored: false, problems: [next.problem] };
  if (sizeOf(next) > limitBytes) throw new Error(`it would exceed ${limitBytes / 2 ** 20} MiB`);
  const { parts, broken } = next;
  const beforeReplace = async (file: string): Promise<void> => {
    // Other adapters ignore the lock, and a process that was stopped for long has lost it.
    if (!(await holds()) || (await readCacheBytes(task.path, context, read)) !== read) throw new Overtaken();
    if (broken?.kept) await keepAside(file, files, now());
  };
  if (parts.length > 0) await writeFileAtomic(task.path, parts, { files, beforeReplace });
  await Promise.all(deposits.map(({ settle }) => settle()));
  return { stored: true, problems: broken ? [broken.problem] : [] };
}

async function mergeUnderLock(task: StoreTask, merge: Merge, context: CacheContext): Promise<StoreResult> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await mergeOnce(task, merge, context);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
      if (attempt === ATTEMPTS || !(await merge.holds())) throw new Error("other processes keep changing it");
    }
  }
}

const STORED: StoreResult = { stored: true, problems: [] };

/** Waits for the lock. Undefined: its owner has written the task's changes together with its own meanwhile. */
async function mergeOrDeposit(
  task: StoreTask,
  seen: CacheBytes,
  target: string,
  context: CacheContext,
): Promise<StoreResult | undefined> {
  const { files, lockTimes: times } = context;
  const deposit = createDeposit(target, task, files);
  try {
    return await withLock(target, { files, times, isDone: deposit.ask }, async (holds) => {
      if (await deposit.isWritten()) return undefined;
      await deposit.withdraw();
      return mergeUnderLock(task, { seen, target, holds }, context);
    });
  } finally {
    await deposit.withdraw();
  }
}

/** The task `storeEntries`. Never throws. */
export async function storeEntries(task: StoreTask, context: CacheContext = realWorld): Promise<StoreResult> {
  const { files, now } = context;
  try {
    const read = await readCacheBytes(task.path, context);
    if ("state" in read) return { stored: false, problems: [read.problem] };
    const next = nextFile(task.path, read.bytes, [task], now());
    if (next.state === "closed") return { stored: false, problems: [next.problem] };
    // Most often nothing is new: then neither the lock nor a write is needed.
    if (next.parts.length === 0) return STORED;
    const { target, file } = await files.find(task.path);
    if (file && (file.mode & OWNER_MAY_WRITE) === 0) throw new Error("it is read-only");
    const result = await mergeOrDeposit(task, read, target, context);
    // The process that wrote the task for this one also clears up.
    if (result === undefined) return STORED;
    await sweepTemps(target, files, now());
    await sweepDeposits(target, files, now());
    return result;
  } catch (error) {
    return { stored: false, problems: [`${task.path} could not be written: ${reasonOf(error)}`] };
  }
}
