/**
 * A lock for a file: one writer at a time among all processes and threads of a machine, and among machines that share
 * the folder.
 *
 * The lock is a folder beside the file that holds one entry named after its owner. Three properties of the
 * file system make it safe without comparing clocks:
 * - taking the lock is one rename of a prepared folder, which succeeds only if there is no folder or an empty one;
 * - the entry of a dead owner is removed by its name, so a slow contender never removes the next owner;
 * - the owner renames its entry from time to time, so an entry whose name does not change has no live owner. A contender
 *   whose own process was suspended, as in a laptop that sleeps, has seen nothing: it counts only time in which it
 *   looked.
 *
 * proper-lockfile 4.1.2 is not used: two contenders for the lock of a dead holder can both get it, since it removes
 * any folder that is there (github.com/moxystudio/node-proper-lockfile/issues/121), and it detects a dead holder only by
 * the age of the folder, two seconds at the least.
 */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type FileSystem, tempBeside } from "./file-system.ts";
import { codeOf, PRIVATE_FILE } from "./read-regular.ts";

export interface LockTimes {
  /** A contender gives up after this time. */
  waitMs: number;
  /** The owner renames its entry at this interval. */
  beatMs: number;
  /** An owner that has not renamed its entry for so long is dead. More than two beats, less than `waitMs`. */
  silentMs: number;
}

export const LOCK_TIMES: LockTimes = {
  waitMs: LIMITS.lockWaitMs,
  beatMs: LIMITS.lockBeatMs,
  silentMs: LIMITS.lockSilentMs,
};

/** Pause between two looks at a lock: about an eighth of the time waited so far, within these bounds. */
const RETRY_MS = { least: 2, most: 25 } as const;
/** Attempts of a beat that fails for a reason that may pass. */
const BEAT_ATTEMPTS = 3;
/**
 * The most time that counts between two looks at a lock. Longer than a look and its pause, and so short that a suspended
 * contender does not mistake its own pause for the owner's silence.
 */
const STEP_MS = 100;
/** Error codes of a rename onto a folder that is not empty; on Windows also of one that another program looks at. */
const HELD = process.platform === "win32" ? ["EPERM", "EACCES", "EBUSY", "EEXIST"] : ["ENOTEMPTY", "EEXIST"];

/** Leaves room for the dot, for `.lock` and for the name of a prepared lock within the 255 bytes of a file name. */
const LONGEST_NAME = 200;

/** The folder that is the lock of a file. Its name differs from `<file>.lock`, which other programs use. */
export function lockPathOf(target: string): string {
  const name = basename(target);
  const short =
    Buffer.byteLength(name) <= LONGEST_NAME ? name : createHash("sha256").update(name).digest("hex");
  return join(dirname(target), `.${short}.lock`);
}

/** The text of a file or link of the kernel; empty on systems without it, which are all but Linux. */
export function kernelText(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

let machineKnown: string | undefined;

/** Identifies where process ids are comparable: one boot of one machine, and one container on it. */
const machine = (): string => {
  machineKnown ??= createHash("sha256")
    .update(hostname())
    .update(kernelText(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8")))
    .update(kernelText(() => readlinkSync("/proc/self/ns/pid")))
    .digest("hex")
    .slice(0, 8);
  return machineKnown;
};

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

/** The machine, the process, and which of its owners, with the number of its beats. */
const ENTRY = /^([0-9a-f]{8})-(\d{1,10})-[0-9a-f]{12}\.\d+$/;

/** Whether an entry names a process of this machine that has ended. False for other machines, where this is unknown. */
function isDead(entry: string): boolean {
  const [, at, pid] = ENTRY.exec(entry) ?? [];
  return at === machine() && !isAlive(Number(pid));
}

class Owner {
  readonly #files: FileSystem;
  readonly #lock: string;
  readonly #id = `${machine()}-${process.pid}-${randomBytes(6).toString("hex")}`;
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
   * Asks the file system and not the memory, since the lock can be lost while this process is suspended. True also
   * means that no contender takes the lock within the next `silentMs`.
   */
  async holds(): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      if (await this.#beat()) return true;
      if (this.#lost || attempt === BEAT_ATTEMPTS) return false;
      await sleep(RETRY_MS.most);
    }
  }

  /** Gives the entry its next name. Beats run one after the other. */
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
      // Any other failure may pass. If it does not, contenders see an entry that does not change.
      if (codeOf(error) === "ENOENT") this.#lost = true;
      return false;
    }
  }

  /** Removes the lock. A lock that cannot be removed is left to the next contender, which sees that it no longer beats. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    try {
      await this.#files.remove(join(this.#lock, this.entry));
      await this.#files.remove(this.#lock);
    } catch {
      // The folder already belongs to the next owner, or the file system failed after the work was done.
    }
  }
}

/** One who waits for a lock. Counts the time in which it looks, without the time in which its process is suspended. */
class Contender {
  lookedMs = 0;
  #last = performance.now();
  #seen = "";
  #seenSinceMs = 0;

  /**
   * Removes entries of dead owners, and answers whether the lock may now be free. The lock of a project's file lies in a clone,
   * which may have put anything in its place: only what an owner has made is removed, and never through a link.
   */
  async clear(lock: string, files: FileSystem, silentMs: number): Promise<boolean> {
    const found = await lstat(lock).catch(() => undefined);
    if (found && !found.isDirectory()) throw new Error(`${lock} is not the folder of a lock: remove it`);
    const entries = (await files.list(lock)).sort();
    const now = performance.now();
    this.lookedMs += Math.min(now - this.#last, STEP_MS);
    this.#last = now;
    if (entries.join("/") !== this.#seen) {
      this.#seen = entries.join("/");
      this.#seenSinceMs = this.lookedMs;
    }
    const gone =
      this.lookedMs - this.#seenSinceMs > silentMs
        ? entries.filter((entry) => ENTRY.test(entry))
        : entries.filter(isDead);
    for (const entry of gone) await files.remove(join(lock, entry));
    // Windows cannot rename onto a folder, even an empty one. A new owner keeps its folder, which is not empty.
    if (gone.length === entries.length) await files.remove(lock).catch(() => undefined);
    return gone.length === entries.length;
  }
}

/** At random, so that contenders do not look at the same moments. */
const pauseMs = (waitedMs: number): number =>
  Math.min(RETRY_MS.most, RETRY_MS.least + waitedMs / 8) * (0.5 + Math.random() / 2);

/** Renames the prepared folder to the lock as soon as nobody holds the lock. Throws after `waitMs`. */
async function take(
  { files, times = LOCK_TIMES, whileHeld }: LockOptions,
  prepared: string,
  lock: string,
): Promise<void> {
  const contender = new Contender();
  for (let isLast = false; ; ) {
    const refused = await files.rename(prepared, lock).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (refused === undefined) return;
    if (!HELD.includes(codeOf(refused) ?? "")) throw refused;
    await whileHeld?.();
    const isFree = await contender.clear(lock, files, times.silentMs);
    if (contender.lookedMs <= times.waitMs) {
      await sleep(isFree ? 1 : pauseMs(contender.lookedMs));
      continue;
    }
    if (!isFree) throw new Error(`another process has held ${lock} for ${times.waitMs / 1_000} s`);
    // Nobody holds the lock: one more attempt, whose error says why the lock cannot be taken.
    if (isLast) throw refused;
    isLast = true;
  }
}

interface LockOptions {
  files: FileSystem;
  times?: LockTimes;
  /** Runs at each look at a lock that another process holds. What it throws ends the wait. */
  whileHeld?: () => Promise<void>;
}

/**
 * Runs `task` as the only writer of `target`. Throws if the lock cannot be taken within the limit, and what `task`
 * throws. `holds` answers whether this process still has the lock. The task must ask right before it replaces the file,
 * since the process may have been suspended meanwhile.
 */
export async function withLock<T>(
  target: string,
  options: LockOptions,
  task: (holds: () => Promise<boolean>) => Promise<T>,
): Promise<T> {
  const { files, times = LOCK_TIMES } = options;
  const lock = lockPathOf(target);
  const owner = new Owner(files, lock);
  const prepared = tempBeside(lock);
  const entry = join(prepared, owner.entry);
  try {
    await (await files.create(entry, PRIVATE_FILE)).close();
    await take(options, prepared, lock);
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
