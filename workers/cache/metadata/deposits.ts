/**
 * Changes that wait for the lock of a cache file. Owns the folder beside the file in which a process that finds the
 * lock taken deposits its changes: the owner of the lock writes them together with its own, so that all who wait are
 * served by one write. Must not: throw, or be needed. A depositor waits for the lock as if there were no deposit,
 * since the owner may be an older version of this package, or may die; what is merged twice is merged once.
 *
 * A deposit is `<id>.json`. The owner renames it to `<id>.done` when its changes are on the disk. Called by: metadata.ts.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { FileSystem } from "../../shared/files/file-system.ts";
import { removeOld } from "../../shared/files/housekeeping.ts";
import { lockPathOf } from "../../shared/files/lock.ts";
import { PRIVATE_FILE } from "../../shared/files/private-modes.ts";
import type { CacheEntry, SlotChanges } from "../../shared/tasks.ts";
import { readEntry } from "./entry.ts";

const VERSION = 1;
/** Deposits in one write. */
const DEPOSITS = 50;
/** One deposit. */
const DEPOSIT_BYTES = 8 * 1024 * 1024;
/** The folder may be removed by a depositor who leaves it, between its making and its use. */
const ATTEMPTS = 3;

export const depositsOf = (target: string): string => `${lockPathOf(target)}.waiting`;

async function write(path: string, text: string, files: FileSystem): Promise<void> {
  const file = await files.create(path, PRIVATE_FILE);
  try {
    await file.write(text);
  } finally {
    await file.close();
  }
}

export interface Deposit {
  /** Makes the deposit if it is not made, and answers whether the owner of the lock has written it. */
  ask: () => Promise<boolean>;
  /** Answers the same, and makes nothing. */
  isWritten: () => Promise<boolean>;
  withdraw: () => Promise<void>;
}

export function createDeposit(target: string, { entries, used }: SlotChanges, files: FileSystem): Deposit {
  const folder = depositsOf(target);
  const id = randomBytes(6).toString("hex");
  const path = join(folder, `${id}.json`);
  let attempts = 0;
  let isMade = false;
  const isWritten = async (): Promise<boolean> =>
    isMade && (await files.list(folder).catch((): string[] => [])).includes(`${id}.done`);
  return {
    ask: async () => {
      if (!isMade && attempts++ < ATTEMPTS) {
        const text = JSON.stringify({ version: VERSION, entries, used });
        isMade = await write(path, text, files).then(
          () => true,
          () => false,
        );
      }
      return isWritten();
    },
    isWritten,
    withdraw: async () => {
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
    parsed.version !== VERSION ||
    !isObject(parsed.entries) ||
    !isObject(parsed.used)
  ) {
    return undefined;
  }
  const entries = Object.entries(parsed.entries).map(([server, stored]): [string, CacheEntry | undefined] => {
    const hash = isObject(stored) && typeof stored.configHash === "string" ? stored.configHash : "";
    return [server, hash === "" ? undefined : readEntry(stored, hash, nowMs)];
  });
  const used = Object.entries(parsed.used);
  // A part of a deposit does not count: it would be called written as a whole.
  if (entries.some(([, entry]) => !entry) || used.some(([, hash]) => typeof hash !== "string"))
    return undefined;
  return { entries: Object.fromEntries(entries), used: Object.fromEntries(used) } as SlotChanges;
}

export interface Collected {
  changes: SlotChanges;
  /** Tells the depositor that its changes are on the disk. */
  settle: () => Promise<void>;
}

/** The deposits of others. Only the owner of the lock may ask. */
export async function collectDeposits(
  target: string,
  files: FileSystem,
  nowMs: number,
): Promise<Collected[]> {
  const folder = depositsOf(target);
  const names = (await files.list(folder).catch(() => [])).filter((name) => name.endsWith(".json"));
  const collected = names.slice(0, DEPOSITS).map(async (name): Promise<Collected[]> => {
    try {
      const path = join(folder, name);
      const changes = readChanges(await files.read(path, DEPOSIT_BYTES), nowMs);
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
export async function sweepDeposits(target: string, files: FileSystem, nowMs: number): Promise<void> {
  const folder = depositsOf(target);
  const fits = (name: string): boolean => /^[0-9a-f]{12}\.(json|done)$/.test(name);
  await removeOld(folder, files, { nowMs, olderThanMs: LIMITS.leftoverMs, fits })
    .then(() => files.remove(folder))
    .catch(() => undefined);
}
