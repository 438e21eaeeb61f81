/**
 * A lock as Pi takes it with proper-lockfile: a folder whose time of change says that its holder lives. Owns: taking and
 * releasing such a lock for a moment. It is not renewed, so a holder must be done long before `staleMs`, and asks before
 * it changes anything. Called by: pi-file.ts.
 */
import { mkdir, rmdir, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { reasonOf } from "../../../shared/files/file-system.ts";
import { codeOf, PRIVATE_FOLDER } from "../../../shared/files/read-regular.ts";
import { SignInProblem } from "../model/model.ts";

export interface PiLockTimes {
  /** A holder that has not touched its folder for so long is dead. Pi decides this time. */
  staleMs: number;
  waitMs: number;
}

const RETRY_MS = 20;
/** Windows answers EPERM for a folder that is being removed. */
const HELD = process.platform === "win32" ? ["EEXIST", "EPERM"] : ["EEXIST"];

/** Identifies the folder of one holder at one time; undefined if there is none. */
async function holderOf(lock: string): Promise<{ id: string; touchedMs: number } | undefined> {
  try {
    const { dev, ino, mtimeMs } = await stat(lock);
    return { id: `${dev}:${ino}:${mtimeMs}`, touchedMs: mtimeMs };
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the folder. False if there is one. */
async function make(lock: string): Promise<boolean> {
  try {
    await mkdir(lock, { mode: PRIVATE_FOLDER });
    return true;
  } catch (error) {
    if (HELD.includes(codeOf(error) ?? "")) return false;
    throw error;
  }
}

async function remove(lock: string): Promise<void> {
  await rmdir(lock).catch((error: unknown) => {
    if (codeOf(error) !== "ENOENT") throw error;
  });
}

async function tryTake(lock: string, staleMs: number): Promise<boolean> {
  if (await make(lock)) return true;
  const holder = await holderOf(lock);
  if (holder !== undefined && holder.touchedMs >= Date.now() - staleMs) return false;
  if (holder !== undefined) await remove(lock);
  return make(lock);
}

/**
 * Runs `task` while this process has the lock. Throws `SignInProblem` "lock-busy", "cancelled" or "store-unwritable", and
 * what `task` throws. `holds`: whether nobody has taken the lock over.
 */
export async function withPiLock<T>(
  lock: string,
  { staleMs, waitMs, signal }: PiLockTimes & { signal: AbortSignal },
  task: (holds: () => Promise<boolean>) => Promise<T>,
): Promise<T> {
  const untilMs = performance.now() + waitMs;
  const attempt = async (): Promise<boolean> => {
    if (signal.aborted) throw new SignInProblem("cancelled");
    return tryTake(lock, staleMs).catch((error: unknown) => {
      throw new SignInProblem("store-unwritable", { path: lock, what: reasonOf(error) }, error);
    });
  };
  while (!(await attempt())) {
    if (performance.now() > untilMs) throw new SignInProblem("lock-busy", { path: lock });
    await sleep(RETRY_MS);
  }
  const mine = await holderOf(lock);
  const holds = async (): Promise<boolean> => mine !== undefined && (await holderOf(lock))?.id === mine.id;
  try {
    return await task(holds);
  } finally {
    if (await holds()) await remove(lock);
  }
}
