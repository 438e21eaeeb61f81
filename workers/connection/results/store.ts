/**
 * Files for the parts of a result that the model does not get: full texts, audio, binary resources. Each session has
 * one private folder (0700) below the agent folder, made when it is first needed. Files are 0600 and are removed
 * after seven days, also while a session runs, or earlier if all of them, or those of one session, would take too much room
 * (`Room`). A failure is a value, because the result must arrive anyway. Owns also the one notice about files that go before
 * their time.
 */

import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, rm, rmdir, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { isHighSurrogate } from "../../../src/shared/text/unprintable.ts";
import { roomOf } from "../../shared/files/file-system.ts";
import { makeFolder } from "../../shared/files/owner.ts";
import { PRIVATE_FILE } from "../../shared/files/read-regular.ts";
import { joined, type ResultStore, SHORT_CHARS } from "./files.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const RESULTS_MAX_AGE_MS = 7 * DAY_MS;
/** Old files are looked for with the first file that is stored after this time. */
const OLD_EVERY_MS = 60 * 60 * 1_000;
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

interface RoomOptions {
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

const freeIn = async (folder: string): Promise<number> => roomOf(await statfs(folder));

const costOf = ({ bytes }: StoredFile): number => Math.max(bytes, FILE_BYTES);
const costOfAll = (files: readonly StoredFile[]): number =>
  files.reduce((all, file) => all + costOf(file), 0);

/**
 * The room of one session. Other processes store and remove at the same time, so what is taken is what a look found and
 * what this session has stored since: each process may exceed the bound by `LOOK_EVERY_BYTES`.
 */
class Room {
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

  /** Looks at what is stored, if the next file wants that. Never rejects. */
  prepare(): void {
    const looked = this.#making.then(() => (this.#isLookDue ? this.#look() : undefined));
    this.#making = looked.catch(() => undefined);
  }

  get #isLookDue(): boolean {
    return this.#sinceLook >= LOOK_EVERY_BYTES;
  }

  async #make(file: StoredFile): Promise<{ bytes: number } | { problem: string }> {
    if (this.#isLookDue || (await this.#lackFor(file))) await this.#look();
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
 * look tries again.
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

/** Characters encoded at a time: a text of any size goes through one small buffer. */
const CHUNK_CHARS = 1024 * 1024;
const NAME_CHARS = 60;

/** Folder of all sessions' results, below the agent folder. */
export const RESULTS_FOLDER = "mcp-results";

interface StoreOptions extends RoomOptions {
  /** Opens a new file for writing. */
  create?: (path: string) => Promise<FileHandle>;
  /** Gets why old files cannot be removed. */
  onOldKept?: (error: unknown) => void;
  /** Milliseconds since 1970. */
  now?: () => number;
}

async function writeText(file: FileHandle, text: string, buffer: Uint8Array): Promise<number> {
  const encoder = new TextEncoder();
  let bytes = 0;
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + CHUNK_CHARS, text.length);
    // A surrogate pair that is cut in two would be written as two replacement characters.
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    const { written } = encoder.encodeInto(text.slice(at, end), buffer);
    await file.writeFile(buffer.subarray(0, written));
    bytes += written;
    at = end;
  }
  return bytes;
}

/** All at once: `writeFile` writes 512 KiB, and then waits for its turn. */
async function writeBytes(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}

async function writeParts(file: FileHandle, parts: readonly (string | Uint8Array)[]): Promise<number> {
  const longest = parts.reduce((most, part) => Math.max(most, typeof part === "string" ? part.length : 0), 0);
  const buffer = new Uint8Array(Math.min(Math.max(longest, 2 * SHORT_CHARS), CHUNK_CHARS) * 3);
  let bytes = 0;
  for (const part of joined(parts)) {
    if (typeof part === "string") {
      bytes += await writeText(file, part, buffer);
    } else {
      await writeBytes(file, part);
      bytes += part.length;
    }
  }
  return bytes;
}

const fileName = (label: string, extension: string): string => {
  const readable = label.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, NAME_CHARS);
  return `${readable}-${randomBytes(4).toString("hex")}.${extension}`;
};

const lengthOf = (parts: readonly (string | Uint8Array)[]): number =>
  parts.reduce((all, part) => all + part.length, 0);

export function createResultStore(options: StoreOptions): ResultStore {
  const {
    root,
    create = (path: string) => open(path, "wx", PRIVATE_FILE),
    onOldKept,
    now = Date.now,
  } = options;
  // The session's start has looked for old files.
  let lookedMs = now();
  /** Only once a file is stored: its folder is then not empty, and stays. */
  const removeOld = (): void => {
    if (Math.abs(now() - lookedMs) < OLD_EVERY_MS) return;
    lookedMs = now();
    removeOldResults(root, { now: lookedMs }).catch(onOldKept);
  };
  let chosen: { folder: string; room: Room } | undefined;
  /** Random bytes would load Node's crypto at each start. */
  const choose = (): { folder: string; room: Room } => {
    const folder = join(root, `${new Date().toISOString().slice(0, 10)}-${randomBytes(6).toString("hex")}`);
    return { folder, room: new Room(folder, options) };
  };
  return {
    prepare() {
      chosen ??= choose();
      const { folder, room } = chosen;
      // What fails now fails again with the file, which tells why.
      makeFolder(folder).catch(() => undefined);
      room.prepare();
    },
    async save(parts, label, extension) {
      chosen ??= choose();
      const { folder, room } = chosen;
      const path = join(folder, fileName(label, extension));
      let kept: { bytes: number } | undefined;
      try {
        // Each time, because a cleanup or the user may have removed it.
        await makeFolder(folder);
        const place = await room.make(path, lengthOf(parts));
        if ("problem" in place) return place;
        kept = place;
        const file = await create(path);
        try {
          kept.bytes = await writeParts(file, parts);
          removeOld();
          return { path, bytes: kept.bytes };
        } finally {
          await file.close();
        }
      } catch (error) {
        // A part of a result would look like the whole.
        await rm(path, { force: true }).catch(() => undefined);
        if (kept) kept.bytes = 0;
        return { problem: (error as Error).message };
      }
    },
  };
}
