/**
 * `mcp-cache.json`: what servers said about themselves, so that the next start knows their tools without connecting.
 * Owns the file and two tasks: read the entries of a configuration, and store new ones. Must not: throw (anything wrong
 * with the file is a problem, one line for the log, and the session goes on), or lose what others stored. To add a field to an entry: workers/shared/tasks.ts and entry.ts.
 */

import { randomBytes } from "node:crypto";
import { homedir } from "node:os";
import { join } from "node:path";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import {
  type FileSystem,
  keepAside,
  nodeFiles,
  reasonOf,
  removeOld,
  sweepTemps,
  writeFileAtomic,
} from "../../shared/files/file-system.ts";
import { LOCK_TIMES, type LockTimes, lockPathOf, withLock } from "../../shared/files/lock.ts";
import { PRIVATE_FILE } from "../../shared/files/read-regular.ts";
import { FOLDER_KEY, hashDefinition, OAUTH_KEY } from "../../shared/json.ts";
import type {
  CacheAnswer,
  CacheQuery,
  KnownEntry,
  SlotChanges,
  StoreResult,
  StoreTask,
} from "../../shared/tasks.ts";
import { findEntry, readEntry, type Slots } from "./entry.ts";
import {
  type CacheAccess,
  type CacheBytes,
  loadCache,
  type NextFile,
  nextFile,
  readCacheBytes,
  unparsedSlots,
} from "./file.ts";

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
  return answerFrom(cache.slots, query, context.now());
}

/**
 * The task `readLines`: as `readCache`, and the tools stay JSON until somebody needs them. Undefined if the file must be
 * parsed as a whole. Never throws.
 */
export async function readLines(
  query: CacheQuery,
  context: CacheContext = realWorld,
): Promise<CacheAnswer | undefined> {
  const read = await readCacheBytes(query.path, context);
  if ("state" in read || !read.bytes) return undefined;
  const slots = await unparsedSlots(read.bytes, Object.keys(query.definitions));
  return slots && answerFrom(slots, query, context.now());
}

function answerFrom(slots: Slots, { definitions }: CacheQuery, nowMs: number): CacheAnswer {
  const found = Object.entries(definitions).flatMap(([server, definition]) => {
    const hit = findEntry(slots, server, hashesOf(definition), nowMs);
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
  const nextWith = (others: readonly Collected[], isFull = false): NextFile =>
    nextFile(task.path, read.bytes, {
      all: [...others.map(({ changes }) => changes), task],
      nowMs: now(),
      isFull,
    });
  let deposits = await collectDeposits(target, files, now());
  let next = nextWith(deposits);
  if (deposits.length > 0 && sizeOf(next) > limitBytes) {
    deposits = [];
    next = nextWith(deposits);
  }
  if (sizeOf(next) > limitBytes) next = nextWith(deposits, true);
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

/** Thrown when the owner of the lock has written the task's changes together with its own. */
class Written extends Error {}

/** Waits for the lock, with a deposit for its owner. Throws `Written`. */
async function mergeOrDeposit(
  task: StoreTask,
  seen: CacheBytes,
  target: string,
  context: CacheContext,
): Promise<StoreResult> {
  const { files, lockTimes: times } = context;
  const deposit = createDeposit(target, task, files);
  const whileHeld = async (): Promise<void> => {
    if (await deposit.ask()) throw new Written();
  };
  try {
    return await withLock(target, { files, times, whileHeld }, async (holds) => {
      if (await deposit.isWritten()) throw new Written();
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
    const next = nextFile(task.path, read.bytes, { all: [task], nowMs: now() });
    if (next.state === "closed") return { stored: false, problems: [next.problem] };
    // Most often nothing is new: then neither the lock nor a write is needed.
    if (next.parts.length === 0) return STORED;
    const { target, file } = await files.find(task.path);
    if (file && (file.mode & OWNER_MAY_WRITE) === 0) throw new Error("it is read-only");
    const result = await mergeOrDeposit(task, read, target, context);
    await sweepTemps(target, files, now());
    await sweepDeposits(target, files, now());
    return result;
  } catch (error) {
    // The process that wrote the task for this one also clears up.
    if (error instanceof Written) return STORED;
    return { stored: false, problems: [`${task.path} could not be written: ${reasonOf(error)}`] };
  }
}

/*
 * The hash that pi-mcp-adapter 2.36.0 stores for a definition. The adapter hashes the same form as we do, but fills in
 * environment variables and the home folder before; the two hashes are equal for a definition without any of these.
 * Used only to read the adapter's entries: the hashes that we write never depend on a secret.
 */

type Environment = Record<string, string | undefined>;
type FillIn = (text: string, environment: Environment) => string;

const VARIABLE = [/\$\{(\w+)\}/g, /\$env:(\w+)/g, /\{env:(\w+)\}/g] as const;

/** Fills in the three spellings in turn, as the adapter does: a filled-in value may hold the next spelling. */
const fillIn: FillIn = (text, environment) =>
  VARIABLE.reduce((value, spelling) => value.replace(spelling, (_, name) => environment[name] ?? ""), text);

/** A text that begins with `!` is a command, which is hashed as it stands; `!!` stands for a literal `!`. */
const fillInSecret: FillIn = (text, environment) => {
  if (text.startsWith("!!")) return fillIn(text.slice(1), environment);
  return text.startsWith("!") ? text : fillIn(text, environment);
};

const fillInPath: FillIn = (text, environment) => {
  const path = fillIn(text, environment);
  if (path === "~") return homedir();
  return /^~[/\\]/.test(path) ? join(homedir(), path.slice(2)) : path;
};

const FILLED_IN: Record<string, FillIn> = {
  env: fillInSecret,
  headers: fillInSecret,
  url: fillIn,
  cwd: fillInPath,
  socket: fillInPath,
  bearerToken: fillInSecret,
};

/** A text, or texts by name. */
function filledIn(value: unknown, fill: FillIn, environment: Environment): unknown {
  if (typeof value === "string") return fill(value, environment);
  if (!isObject(value)) return value;
  const texts = Object.entries(value).map(([key, text]) => [
    key,
    typeof text === "string" ? fill(text, environment) : text,
  ]);
  return Object.fromEntries(texts);
}

/** The adapter's hash of a definition, in hex. */
export function adapterHash(definition: Record<string, unknown>, environment: Environment): string {
  const resolved = Object.fromEntries(
    Object.entries(definition).map(([key, value]) => {
      // A key may have the name of a property that every object has.
      const fill = Object.hasOwn(FILLED_IN, key) ? FILLED_IN[key] : undefined;
      return [key, fill ? filledIn(value, fill, environment) : value];
    }),
  );
  const { bearerTokenEnv } = definition;
  if (definition.bearerToken === undefined && typeof bearerTokenEnv === "string") {
    resolved.bearerToken = environment[bearerTokenEnv];
  }
  return hashDefinition(resolved);
}

/**
 * The hashes that an entry of this definition may have, ours first. A definition with a folder or with OAuth settings
 * has no adapter hash: the adapter hashes neither, so its entry may belong to another program of the same name in
 * another folder, or to another client of the server.
 */
export function hashesOf(
  definition: Record<string, unknown>,
  environment: Environment = process.env,
): string[] {
  const ours = hashDefinition(definition);
  if (definition[FOLDER_KEY] !== undefined || definition[OAUTH_KEY] !== undefined) return [ours];
  const theirs = adapterHash(definition, environment);
  return theirs === ours ? [ours] : [ours, theirs];
}

const DEPOSIT_VERSION = 1;
/** Deposits in one write. */
const DEPOSITS = 50;
/** One deposit. */
const DEPOSIT_BYTES = 8 * 1024 * 1024;
/** The folder may be removed by a depositor who leaves it, between its making and its use. */
const MAKING_ATTEMPTS = 3;

export const depositsOf = (target: string): string => `${lockPathOf(target)}.waiting`;

async function writeDeposit(path: string, text: string, files: FileSystem): Promise<boolean> {
  try {
    const file = await files.create(path, PRIVATE_FILE);
    await file.write(text).finally(() => file.close());
    return true;
  } catch {
    return false;
  }
}

/*
 * Changes that wait for the lock of a cache file. In a folder beside the file a process that finds the lock taken deposits
 * its changes: the owner of the lock writes them together with its own, so that all who wait are served by one write.
 * Deposits never throw and are not needed. A depositor waits for the lock as if there were no deposit, since the owner may
 * be an older version of this package, or may die; what is merged twice is merged once.
 *
 * A deposit is `<id>.json`. The owner renames it to `<id>.done` when its changes are on the disk.
 */

function createDeposit(target: string, { entries, used }: SlotChanges, files: FileSystem) {
  const folder = depositsOf(target);
  const id = randomBytes(6).toString("hex");
  const path = join(folder, `${id}.json`);
  let attempts = 0;
  let isMade = false;
  const isWritten = async (): Promise<boolean> =>
    isMade && (await files.list(folder).catch((): string[] => [])).includes(`${id}.done`);
  return {
    /** Makes the deposit if it is not made, and answers whether the owner of the lock has written it. */
    ask: async (): Promise<boolean> => {
      if (!isMade && attempts++ < MAKING_ATTEMPTS) {
        const text = JSON.stringify({ version: DEPOSIT_VERSION, entries, used });
        isMade = await writeDeposit(path, text, files);
      }
      return isWritten();
    },
    isWritten,
    withdraw: async (): Promise<void> => {
      if (attempts === 0) return;
      for (const left of [path, join(folder, `${id}.done`), folder]) {
        await files.remove(left).catch(() => undefined);
      }
    },
  };
}

/** What others may have deposited, checked as an entry of the file is; undefined if it is something else. */
function readChanges(text: string, nowMs: number): SlotChanges | undefined {
  const parsed: unknown = JSON.parse(text);
  if (
    !isObject(parsed) ||
    parsed.version !== DEPOSIT_VERSION ||
    !isObject(parsed.entries) ||
    !isObject(parsed.used)
  ) {
    return undefined;
  }
  const entries = Object.entries(parsed.entries).map(([server, stored]): [string, KnownEntry | undefined] => {
    const hash = isObject(stored) && typeof stored.configHash === "string" ? stored.configHash : "";
    return [server, hash === "" ? undefined : readEntry(stored, hash, nowMs)];
  });
  const used = Object.entries(parsed.used);
  // A part of a deposit does not count: it would be called written as a whole.
  if (entries.some(([, entry]) => !entry) || used.some(([, hash]) => typeof hash !== "string"))
    return undefined;
  return { entries: Object.fromEntries(entries), used: Object.fromEntries(used) } as SlotChanges;
}

interface Collected {
  changes: SlotChanges;
  /** Tells the depositor that its changes are on the disk. */
  settle: () => Promise<void>;
}

/** The deposits of others. Only the owner of the lock may ask. */
async function collectDeposits(target: string, files: FileSystem, nowMs: number): Promise<Collected[]> {
  const folder = depositsOf(target);
  const names = (await files.list(folder).catch(() => [])).filter((name) => name.endsWith(".json"));
  const collected = names.slice(0, DEPOSITS).map(async (name): Promise<Collected[]> => {
    try {
      const path = join(folder, name);
      const changes = readChanges((await files.readBytes(path, DEPOSIT_BYTES)).toString("utf8"), nowMs);
      const settle = (): Promise<void> =>
        files.rename(path, path.replace(/json$/, "done")).catch(() => undefined);
      return changes ? [{ changes, settle }] : [];
    } catch {
      // The depositor is still writing, or has gone.
      return [];
    }
  });
  return (await Promise.all(collected)).flat();
}

/** Removes what killed depositors left behind. */
async function sweepDeposits(target: string, files: FileSystem, nowMs: number): Promise<void> {
  const folder = depositsOf(target);
  const fits = (name: string): boolean => /^[0-9a-f]{12}\.(json|done)$/.test(name);
  await removeOld(folder, files, { nowMs, olderThanMs: LIMITS.leftoverMs, fits });
  await files.remove(folder).catch(() => undefined);
}
