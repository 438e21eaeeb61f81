/**
 * One writer at a time for a file, over all processes and threads of a machine, and over machines that
 * share the folder.
 *
 * The lock is a folder beside the file that holds one entry named after its owner. Three properties of the
 * file system make it safe without comparing clocks:
 * - taking it is one rename of a prepared folder: it succeeds only where no folder is, or an empty one;
 * - an owner that is gone is removed by its name, so that a slow contender never removes the next owner;
 * - the owner renames its entry from time to time, so an entry that stands still has no live owner. A contender whose
 *   own process stood still, as in a laptop that sleeps, has seen nothing: it counts only time in which it looked.
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
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { tempBeside } from "./atomic-file.ts";
import { codeOf, type FileSystem } from "./file-system.ts";
import { PRIVATE_FILE } from "./private-modes.ts";

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

const RETRY_MS = { least: 3, most: 25 } as const;
/** Of a beat that fails for a reason that may pass. */
const BEAT_ATTEMPTS = 3;
/**
 * What is counted at most between two looks at a lock. More than a look and its pause take, and so little that a stop
 * of the contender is not taken for the silence of the owner.
 */
const STEP_MS = 100;
/** What a rename onto a folder with something in it is refused with. */
const HELD = process.platform === "win32" ? ["EPERM", "EACCES", "EEXIST"] : ["ENOTEMPTY", "EEXIST"];

/** Room for the dot and `.lock` around it, and for the name of a prepared lock. */
const LONGEST_NAME = 200;

/** The folder that is the lock of a file. The name is not the `<file>.lock` that other programs use. */
export function lockPathOf(target: string): string {
  const name = basename(target);
  const short =
    Buffer.byteLength(name) <= LONGEST_NAME ? name : createHash("sha256").update(name).digest("hex");
  return join(dirname(target), `.${short}.lock`);
}

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
  #beating: Promise<boolean> = Promise.resolve(true);
  #timer: NodeJS.Timeout | undefined;

  constructor(files: FileSystem, lock: string) {
    this.#files = files;
    this.#lock = lock;
  }

  get entry(): string {
    return `${this.#id}.${this.#beats}`;
  }

  startBeating(beatMs: number): void {
    this.#timer = setInterval(() => void this.#beat(), beatMs);
  }

  /**
   * Asks the file system and not the memory, since the lock can have been lost while this process stood still. True
   * says at the same time that no contender takes the lock within the next silence.
   */
  async holds(): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      if (await this.#beat()) return true;
      if (this.#lost || attempt === BEAT_ATTEMPTS) return false;
      await sleep(RETRY_MS.most);
    }
  }

  /** One at a time: each gives the entry its next name. */
  #beat(): Promise<boolean> {
    const done = this.#beating.then(() => this.#rename());
    this.#beating = done;
    return done;
  }

  async #rename(): Promise<boolean> {
    if (this.#lost) return false;
    try {
      const from = join(this.#lock, this.entry);
      await this.#files.rename(from, join(this.#lock, `${this.#id}.${this.#beats + 1}`));
      this.#beats++;
      return true;
    } catch (error) {
      // Any other failure may pass; if it does not, the others see an owner that stands still.
      if (codeOf(error) === "ENOENT") this.#lost = true;
      return false;
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

/** Counts the time in which a contender looks at the lock, and not that in which its process stands still. */
class LookingTime {
  ms = 0;
  #last = performance.now();

  look(): void {
    const now = performance.now();
    this.ms += Math.min(now - this.#last, STEP_MS);
    this.#last = now;
  }
}

/** Removes an entry whose owner is gone. Answers whether the lock may now be free. */
function createTakeover(
  files: FileSystem,
  lock: string,
  { time, silentMs }: { time: LookingTime; silentMs: number },
): () => Promise<boolean> {
  let seen = "";
  let sinceMs = 0;
  return async () => {
    const entries = (await files.list(lock)).sort();
    time.look();
    if (entries.join("/") !== seen) {
      seen = entries.join("/");
      sinceMs = time.ms;
    }
    const gone = time.ms - sinceMs > silentMs ? entries : entries.filter(isDead);
    for (const entry of gone) await files.remove(join(lock, entry));
    // Windows renames onto no folder at all. An owner that came meanwhile keeps its own: it is not empty.
    if (gone.length === entries.length) await files.remove(lock).catch(() => undefined);
    return gone.length === entries.length;
  };
}

/** Renames the prepared folder to the lock, as soon as nobody holds it. Throws when that takes too long. */
async function take(files: FileSystem, prepared: string, lock: string, times: LockTimes): Promise<void> {
  const time = new LookingTime();
  const takeover = createTakeover(files, lock, { time, silentMs: times.silentMs });
  for (let isLast = false; ; ) {
    const refused = await files.rename(prepared, lock).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refused === undefined) return;
    if (!HELD.includes(codeOf(refused) ?? "")) throw refused;
    const isFree = await takeover();
    if (time.ms <= times.waitMs) {
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
 * `task` throws. `holds` answers whether the lock is still ours, which must be asked right before the file is
 * replaced: this process may have been stopped meanwhile.
 */
export async function withLock<T>(
  target: string,
  { files, times = LOCK_TIMES }: { files: FileSystem; times?: LockTimes },
  task: (holds: () => Promise<boolean>) => Promise<T>,
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
    return await task(() => owner.holds());
  } finally {
    await owner.release();
  }
}
