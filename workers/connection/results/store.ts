/**
 * Files for the parts of a result that the model does not get: full texts, audio, binary resources. Each session has
 * one private folder (0700) below the agent folder, made when it is first needed. Files are 0600 and are removed
 * after seven days, or earlier if all of them, or those of one session, would take too much room (`Room`). A failure is
 * a value, because the result must arrive anyway.
 */
import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { isHighSurrogate } from "../../../src/shared/text/unprintable.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "../../shared/files/read-regular.ts";
import { Room, type RoomOptions } from "./room.ts";

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

export interface StoreOptions extends RoomOptions {
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
export function* joined(parts: readonly (string | Uint8Array)[]): Generator<string | Uint8Array> {
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

const lengthOf = (parts: readonly (string | Uint8Array)[]): number =>
  parts.reduce((all, part) => all + part.length, 0);

export function createResultStore(options: StoreOptions): ResultStore {
  const { root, create = (path: string) => open(path, "wx", PRIVATE_FILE) } = options;
  let chosen: { folder: string; room: Room } | undefined;
  /** Random bytes would load Node's crypto at each start. */
  const choose = (): { folder: string; room: Room } => {
    const folder = join(root, `${new Date().toISOString().slice(0, 10)}-${randomBytes(6).toString("hex")}`);
    return { folder, room: new Room(folder, options) };
  };
  return {
    async save(parts, label, extension) {
      chosen ??= choose();
      const { folder, room } = chosen;
      const path = join(folder, fileName(label, extension));
      let kept: { bytes: number } | undefined;
      try {
        // The folder is made each time, because a cleanup or the user may have removed it.
        await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER });
        const place = await room.make(path, lengthOf(parts));
        if ("problem" in place) return place;
        kept = place;
        const file = await create(path);
        try {
          kept.bytes = await writeParts(file, parts);
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
