/**
 * Files for the parts of a result that the model does not get: full texts, audio, binary resources. Each session has
 * one private folder (0700) below the agent folder, made when it is first needed. Files are 0600 and are removed
 * after seven days. A failure is a value, because the result must arrive anyway.
 */
import { randomBytes } from "node:crypto";
import { type FileHandle, lstat, mkdir, open, readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isHighSurrogate } from "../../../src/shared/text/surrogates.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../shared/files/private-modes.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
export const RESULTS_MAX_AGE_MS = 7 * DAY_MS;
/** Characters encoded at a time: a text of any size goes through one small buffer. */
const CHUNK_CHARS = 1024 * 1024;
/** Shorter texts are written together. */
const SHORT_CHARS = 64 * 1024;
const NAME_CHARS = 60;

/** Folder of all sessions' results, below the agent folder. */
export const RESULTS_FOLDER = "mcp-results";

export type Saved = { path: string; bytes: number } | { problem: string };

export interface ResultStore {
  /** Writes the parts one after the other. `label` and `extension` make the name of the file readable. */
  save(parts: readonly (string | Uint8Array)[], label: string, extension: string): Promise<Saved>;
}

export interface StoreOptions {
  /** The folder that holds a folder for each session. */
  root: string;
  /** Opens a new file for writing. */
  create?: (path: string) => Promise<FileHandle>;
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

/** Joins short texts, so that a hundred thousand of them take a few writes. */
function* joined(parts: readonly (string | Uint8Array)[]): Generator<string | Uint8Array> {
  let short: string[] = [];
  let chars = 0;
  for (const part of parts) {
    const isShort = typeof part === "string" && part.length < SHORT_CHARS;
    if (short.length > 0 && (!isShort || chars >= SHORT_CHARS)) {
      yield short.join("");
      short = [];
      chars = 0;
    }
    if (!isShort) {
      yield part;
      continue;
    }
    short.push(part);
    chars += part.length;
  }
  if (short.length > 0) yield short.join("");
}

async function writeParts(file: FileHandle, parts: readonly (string | Uint8Array)[]): Promise<number> {
  const longest = parts.reduce((most, part) => Math.max(most, typeof part === "string" ? part.length : 0), 0);
  const buffer = new Uint8Array(Math.min(Math.max(longest, 2 * SHORT_CHARS), CHUNK_CHARS) * 3);
  let bytes = 0;
  for (const part of joined(parts)) {
    if (typeof part === "string") {
      bytes += await writeText(file, part, buffer);
    } else {
      await file.writeFile(part);
      bytes += part.length;
    }
  }
  return bytes;
}

const fileName = (label: string, extension: string): string => {
  const readable = label.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, NAME_CHARS);
  return `${readable}-${randomBytes(4).toString("hex")}.${extension}`;
};

export function createResultStore({ root, create }: StoreOptions): ResultStore {
  const createFile = create ?? ((path: string) => open(path, "wx", PRIVATE_FILE));
  let chosen: string | undefined;
  /** Random bytes would load Node's crypto at each start. */
  const chosenFolder = (): string => {
    chosen ??= join(root, `${new Date().toISOString().slice(0, 10)}-${randomBytes(6).toString("hex")}`);
    return chosen;
  };
  return {
    async save(parts, label, extension) {
      const folder = chosenFolder();
      const path = join(folder, fileName(label, extension));
      try {
        // The folder is made each time, because a cleanup or the user may have removed it.
        await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
        const file = await createFile(path);
        try {
          return { path, bytes: await writeParts(file, parts) };
        } finally {
          await file.close();
        }
      } catch (error) {
        // A part of a result would look like the whole.
        await rm(path, { force: true }).catch(() => undefined);
        return { problem: (error as Error).message };
      }
    },
  };
}

/** The same store for at most `most` files: one result may hold a hundred thousand images. */
export function limitFiles(store: ResultStore, most: number): ResultStore {
  let left = most;
  return {
    save: async (...file) => {
      if (left <= 0) return { problem: `more than ${most} files of one result` };
      left--;
      return store.save(...file);
    },
  };
}

/** Names in a folder; none if the folder does not exist. */
const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/**
 * Removes files older than `maxAgeMs` and empty folders, of all sessions. Follows no links. A file that cannot be
 * removed stays: the next session tries again.
 */
export async function removeOldResults(
  root: string,
  { now = Date.now(), maxAgeMs = RESULTS_MAX_AGE_MS }: { now?: number; maxAgeMs?: number } = {},
): Promise<void> {
  for (const session of await namesIn(root)) {
    const folder = join(root, session);
    const found = await lstat(folder).catch(() => undefined);
    if (!found?.isDirectory()) continue;
    let left = 0;
    for (const name of await namesIn(folder)) {
      const file = await lstat(join(folder, name)).catch(() => undefined);
      if (file?.isFile() && now - file.mtimeMs > maxAgeMs) await rm(join(folder, name), { force: true });
      else left++;
    }
    // A new folder is empty until its first file is written.
    if (left === 0 && now - found.mtimeMs > DAY_MS) await rmdir(folder).catch(() => undefined);
  }
}
