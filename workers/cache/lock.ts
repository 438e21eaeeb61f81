/**
 * One writer at a time for a file, over all processes and threads of a machine, and over machines that
 * share the folder.
 *
 * The lock is a folder beside the file that holds one entry named after its owner. Three properties of the
 * file system make it safe without comparing clocks:
 * - taking it is one rename of a prepared folder: it succeeds only where no folder is, or an empty one;
 * - an owner that is gone is removed by its name, so that a slow contender never removes the next owner;
 * - the owner renames its entry from time to time, so an entry that stands still has no live owner.
 *
 * Not proper-lockfile 4.1.2: two contenders for the lock of a dead holder can both get it, since it removes
 * whatever folder is there (github.com/moxystudio/node-proper-lockfile/issues/121), and it knows a holder as
 * dead only by the age of the folder, two seconds at the least.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../src/protocol/limits.ts";
import { tempBeside } from "./atomic-file.ts";
import { codeOf, type FileSystem } from "./file-system.ts";

export interface LockTimes {
  /** Then the lock is given up. */
  waitMs: number;
  /** The owner shows this often that it lives. */
  beatMs: number;
  /** An owner that has not shown itself for so long is gone. More than two beats, less than `waitMs`. */
  silentMs: number;
}

export const LOCK_TIMES: LockTimes = {
  waitMs: LIMITS.lockWaitMs,
  beatMs: LIMITS.lockBeatMs,
  silentMs: LIMITS.lockSilentMs,
};

const PRIVATE_FILE = 0o600;
const RETRY_MS = { least: 3, most: 25 } as const;
/** What a rename onto a folder with something in it is refused with. */
const HELD = process.platform === "win32" ? ["EPERM", "EACCES", "EEXIST"] : ["ENOTEMPTY", "EEXIST"];

/** The folder that is the lock of a file. The name is not the `<file>.lock` that other programs use. */
export const lockPathOf = (target: string): string => join(dirname(target), `.${basename(target)}.lock`);

/** The text of a file or link of the kernel; empty where there is none, as on systems other than Linux. */
function kernelText(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

/** Within what process ids mean something: one boot of one machine, and one container of it. */
const machine = createHash("sha256")
  .update(hostname())
  .update(kernelText(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")))
  .update(kernelText(() => readlinkSync("/proc/self/ns/pid")))
  .digest("hex")
  .slice(0, 8);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

/** Whether an entry names a process of this machine that has ended. Of any other nothing is known. */
function isDead(entry: string): boolean {
  const [, at, pid] = /^([0-9a-f]{8})-(\d{1,10})-[0-9a-f]{12}\.\d+$/.exec(entry) ?? [];
  return at === machine && !isAlive(Number(pid));
}

class Owner {
  readonly #files: FileSystem;
  readonly #lock: string;
  readonly #id = `${machine}-${process.pid}-${randomBytes(6).toString("hex")}`;
  #beats = 0;
  #lost = false;
  #beating: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(files: FileSystem, lock: string) {
    this.#files = files;
    this.#lock = lock;
  }

  get entry(): string {
    return `${this.#id}.${this.#beats}`;
  }

  /** False once another contender took this owner for gone, as after a long stop of the process. */
  get holds(): boolean {
    return !this.#lost;
  }

  startBeating(beatMs: number): void {
    this.#timer = setInterval(() => {
      this.#beating = this.#beating.then(() => this.#beat());
    }, beatMs);
  }

  async #beat(): Promise<void> {
    try {
      const from = join(this.#lock, this.entry);
      await this.#files.rename(from, join(this.#lock, `${this.#id}.${this.#beats + 1}`));
      this.#beats++;
    } catch (error) {
      // Any other failure may pass; if it does not, the others see an owner that stands still.
      if (codeOf(error) === "ENOENT") this.#lost = true;
    }
  }

  /** What cannot be removed is left to the next contender: it sees that this owner no longer beats. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    try {
      await this.#files.remove(join(this.#lock, this.entry));
      await this.#files.remove(this.#lock);
    } catch {
      // The folder is the next owner's already, or the file system failed after the work was done.
    }
  }
}

/** Removes an entry whose owner is gone. Answers whether the lock may now be free. */
function createTakeover(files: FileSystem, lock: string, silentMs: number): () => Promise<boolean> {
  let seen = "";
  let sinceMs = 0;
  return async () => {
    const entries = (await files.list(lock)).sort();
    const now = performance.now();
    if (entries.join("/") !== seen) {
      seen = entries.join("/");
      sinceMs = now;
    }
    const gone = now - sinceMs > silentMs ? entries : entries.filter(isDead);
    for (const entry of gone) await files.remove(join(lock, entry));
    // Windows renames onto no folder at all. An owner that came meanwhile keeps its own: it is not empty.
    if (gone.length === entries.length) await files.remove(lock).catch(() => undefined);
    return gone.length === entries.length;
  };
}

/** Renames the prepared folder to the lock, as soon as nobody holds it. Throws when that takes too long. */
async function take(files: FileSystem, prepared: string, lock: string, times: LockTimes): Promise<void> {
  const takeover = createTakeover(files, lock, times.silentMs);
  const deadline = performance.now() + times.waitMs;
  for (let isLast = false; ; ) {
    const refused = await files.rename(prepared, lock).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refused === undefined) return;
    if (!HELD.includes(codeOf(refused) ?? "")) throw refused;
    const isFree = await takeover();
    if (performance.now() <= deadline) {
      await sleep(RETRY_MS.least + Math.random() * (RETRY_MS.most - RETRY_MS.least));
      continue;
    }
    if (!isFree) throw new Error(`another process has held ${lock} for ${times.waitMs / 1_000} s`);
    // Nobody holds it: one more attempt, whose refusal says why it cannot be had.
    if (isLast) throw refused;
    isLast = true;
  }
}

/**
 * Runs `task` as the only writer of `target`. Throws where the lock cannot be had within the limit, and what
 * `task` throws. `holds` answers whether the lock is still ours, which a process that was stopped must ask
 * before it replaces the file.
 */
export async function withLock<T>(
  target: string,
  { files, times = LOCK_TIMES }: { files: FileSystem; times?: LockTimes },
  task: (holds: () => boolean) => Promise<T>,
): Promise<T> {
  const lock = lockPathOf(target);
  const owner = new Owner(files, lock);
  const prepared = tempBeside(lock);
  const entry = join(prepared, owner.entry);
  try {
    await (await files.create(entry, PRIVATE_FILE)).close();
    await take(files, prepared, lock, times);
  } catch (error) {
    for (const path of [entry, prepared]) await files.remove(path).catch(() => undefined);
    throw error;
  }
  owner.startBeating(times.beatMs);
  try {
    return await task(() => owner.holds);
  } finally {
    await owner.release();
  }
}
