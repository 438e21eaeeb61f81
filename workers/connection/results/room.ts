/**
 * The room that stored results take on the disk. Owns: their bounds, which files go when there is no room left or when
 * they are old, and the one notice about it. Must not: write a file. Called by: store.ts, results.ts.
 */
import type { Stats } from "node:fs";
import { lstat, readdir, rm, rmdir, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatBytes } from "../../../src/shared/text/amounts.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
export const RESULTS_MAX_AGE_MS = 7 * DAY_MS;
/** Stored results of all sessions. Half of that for one session, so that no server pushes out all that others stored. */
const TOTAL_BYTES = 1024 * 1024 * 1024;
/** Stored results take at most this part of what would be free without them: a full disk would fail Pi's own session. */
const SHARE_OF_FREE = 1 / 4;
/** The least that a file counts: a look at each file takes time, and so there are at most 16,384. */
const FILE_BYTES = 64 * 1024;
/** What a session stores before it looks again at what other processes have stored. */
const LOOK_EVERY_BYTES = 64 * 1024 * 1024;
/** A file that is younger may still be written, or be what a model was just told of: it is not removed for another one. */
const IN_USE_MS = 60_000;

export interface RoomOptions {
  /** The folder that holds a folder for each session. */
  root: string;
  /** Gets, once, a sentence on results that were removed before their time. */
  onFull?: (notice: string) => void;
  /** Bytes for all sessions, where the disk has room for that. */
  totalBytes?: number;
  /** Bytes that are free in the file system of a folder. */
  free?: (folder: string) => Promise<number>;
}

interface StoredFile {
  path: string;
  bytes: number;
  writtenMs: number;
}

interface Lack {
  bytes: number;
  /** The bound that is exceeded, and the files that it is about, the oldest first. */
  bound: number;
  of: readonly StoredFile[];
  whose: string;
}

const freeIn = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

const costOf = ({ bytes }: StoredFile): number => Math.max(bytes, FILE_BYTES);
const costOfAll = (files: readonly StoredFile[]): number =>
  files.reduce((all, file) => all + costOf(file), 0);

/**
 * The room of one session. Other processes store and remove at the same time, so what is taken is what a look found and
 * what this session has stored since: each process may exceed the bound by `LOOK_EVERY_BYTES`.
 */
export class Room {
  readonly #options: RoomOptions;
  readonly #session: string;
  /** The oldest first. */
  #files: StoredFile[] = [];
  #sinceLook = Number.POSITIVE_INFINITY;
  #isTold = false;
  #making: Promise<unknown> = Promise.resolve();

  /** `session`: the folder of the session's own files. */
  constructor(session: string, options: RoomOptions) {
    this.#session = session;
    this.#options = options;
  }

  /**
   * Removes the oldest files until there is room for this one, and keeps the room for it: whoever writes the file corrects
   * `bytes`. Answers why there is no room. One file at a time.
   */
  make(path: string, bytes: number): Promise<{ bytes: number } | { problem: string }> {
    const made = this.#making.then(() => this.#make({ path, bytes, writtenMs: Date.now() }));
    this.#making = made.catch(() => undefined);
    return made;
  }

  async #make(file: StoredFile): Promise<{ bytes: number } | { problem: string }> {
    if (this.#sinceLook >= LOOK_EVERY_BYTES || (await this.#lackFor(file))) await this.#look();
    for (let lack = await this.#lackFor(file); lack; lack = await this.#lackFor(file)) {
      if (await this.#removeOldest(lack)) continue;
      return {
        problem: `the stored results of ${lack.whose} may take ${formatBytes(lack.bound)} at the moment`,
      };
    }
    this.#files.push(file);
    this.#sinceLook += costOf(file);
    return file;
  }

  async #lackFor(file: StoredFile): Promise<Lack | undefined> {
    const { root, totalBytes = TOTAL_BYTES, free = freeIn } = this.#options;
    // A disk that does not tell its room has room.
    const room = await free(root).catch(() => Number.POSITIVE_INFINITY);
    const all = this.#files;
    const total = Math.floor(Math.min(totalBytes, (room + costOfAll(all)) * SHARE_OF_FREE));
    const own = all.filter(({ path }) => dirname(path) === this.#session);
    const bounds = [
      { of: own, bound: Math.floor(total / 2), whose: "one session" },
      { of: all, bound: total, whose: "all sessions" },
    ];
    return bounds
      .map((each) => ({ ...each, bytes: costOfAll([...each.of, file]) - each.bound }))
      .find(({ bytes }) => bytes > 0);
  }

  async #look(): Promise<void> {
    const found: StoredFile[] = [];
    await forEachStored(this.#options.root, (path, { size, mtimeMs }) => {
      found.push({ path, bytes: size, writtenMs: mtimeMs });
    });
    this.#files = found.sort((a, b) => a.writtenMs - b.writtenMs);
    this.#sinceLook = 0;
  }

  /** Whether a file was removed. */
  async #removeOldest({ of, bytes }: Lack): Promise<boolean> {
    const now = Date.now();
    const gone = new Set<StoredFile>();
    let freed = 0;
    for (const file of of) {
      if (freed >= bytes) break;
      // A time in the future is that of a clock which was set back since.
      if (Math.abs(now - file.writtenMs) < IN_USE_MS) continue;
      // A file that cannot be removed does not count until the next look, or this one would never end.
      await rm(file.path, { force: true }).catch(() => undefined);
      gone.add(file);
      freed += costOf(file);
    }
    this.#files = this.#files.filter((file) => !gone.has(file));
    if (freed > 0 && !this.#isTold) {
      this.#isTold = true;
      this.#options.onFull?.(
        `The stored results of MCP servers take too much room in ${this.#options.root}: the oldest are removed before their 7 days.`,
      );
    }
    return freed > 0;
  }
}

/** Names in a folder; none if the folder does not exist. */
const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/** Visits each file of each session, then the session's folder as it was before. Follows no links. */
async function forEachStored(
  root: string,
  onFile: (path: string, file: Stats) => unknown,
  onFolder?: (path: string, folder: Stats) => Promise<void>,
): Promise<void> {
  for (const session of await namesIn(root)) {
    const folder = join(root, session);
    const found = await lstat(folder).catch(() => undefined);
    if (!found?.isDirectory()) continue;
    for (const name of await namesIn(folder)) {
      const file = await lstat(join(folder, name)).catch(() => undefined);
      if (file?.isFile()) await onFile(join(folder, name), file);
    }
    await onFolder?.(folder, found);
  }
}

/**
 * Removes files older than `maxAgeMs` and empty folders, of all sessions. A file that cannot be removed stays: the next
 * session tries again.
 */
export async function removeOldResults(
  root: string,
  { now = Date.now(), maxAgeMs = RESULTS_MAX_AGE_MS }: { now?: number; maxAgeMs?: number } = {},
): Promise<void> {
  await forEachStored(
    root,
    async (path, { mtimeMs }) => {
      if (now - mtimeMs > maxAgeMs) await rm(path, { force: true });
    },
    async (folder, { mtimeMs }) => {
      // A new folder is empty until its first file is written. One that still holds a file stays.
      if (now - mtimeMs > DAY_MS) await rmdir(folder).catch(() => undefined);
    },
  );
}
