/**
 * The few things that the cache asks of a file system, so that a test can make each of them fail. Every
 * member throws what Node throws, unless it says otherwise.
 */
import {
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  rmdir,
  stat,
  unlink,
  utimes,
} from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { PRIVATE_FOLDER } from "./private-modes.ts";
import { irregularKind, readTextOrThrow } from "./read-regular.ts";

export interface Found {
  /** The path itself, or what the links on it lead to, also where nothing is there yet. */
  target: string;
  /**
   * Undefined where nothing is. `mode` holds the permission bits only. `irregular`: what it is, where it is not a
   * regular file.
   */
  file?: { mode: number; bytes: number; modifiedMs: number; irregular?: string };
}

/** A file that was just made, open for writing. */
export interface NewFile {
  write(data: Uint8Array | string): Promise<void>;
  /** Settles when the content is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface FileSystem {
  find(path: string): Promise<Found>;
  /** The text of a regular file of at most so many bytes; of anything else an error that says what it is. */
  read(path: string, limitBytes: number): Promise<string>;
  /** Makes a file and the folders above it. Fails with `EEXIST` where something of that name is. */
  create(path: string, mode: number): Promise<NewFile>;
  rename(from: string, to: string): Promise<void>;
  /** A file, or a folder if it is empty. Nothing there: nothing to do. */
  remove(path: string): Promise<void>;
  /** Names in a folder; none where it does not exist. */
  list(folder: string): Promise<string[]>;
  /** Sets the time of change to now. */
  touch(path: string): Promise<void>;
}

export const codeOf = (error: unknown): string | undefined =>
  (error as NodeJS.ErrnoException | undefined)?.code;

/** Why it failed, without the temp file's name: the same failure is told in the same words. */
export const reasonOf = (error: unknown): string => messageOf(error).replace(/ '[^']*'(?: -> '[^']*')?$/, "");

const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT";

/** What `task` answers, or undefined where the path leads to nothing. */
async function unlessMissing<T>(task: Promise<T>): Promise<T | undefined> {
  try {
    return await task;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function find(path: string): Promise<Found> {
  const real = await unlessMissing(realpath(path));
  if (real === undefined) {
    const link = await readlink(path).catch(() => undefined);
    return { target: link === undefined ? path : resolve(dirname(path), link) };
  }
  const found = await unlessMissing(stat(real));
  if (!found) return { target: real };
  const irregular = irregularKind(found);
  const file = { mode: found.mode & 0o777, bytes: found.size, modifiedMs: found.mtimeMs };
  return { target: real, file: irregular === undefined ? file : { ...file, irregular } };
}

async function create(path: string, mode: number): Promise<NewFile> {
  await mkdir(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
  const file = await open(path, "wx", mode);
  return {
    write: async (data) => {
      // `open` masks the mode with the umask.
      await file.chmod(mode);
      await file.writeFile(data);
    },
    sync: () => file.sync(),
    close: () => file.close(),
  };
}

async function remove(path: string): Promise<void> {
  // Asked first, since `unlink` of a folder is not refused everywhere.
  const found = await unlessMissing(lstat(path));
  if (found) await unlessMissing(found.isDirectory() ? rmdir(path) : unlink(path));
}

export const nodeFiles: FileSystem = {
  find,
  read: readTextOrThrow,
  create,
  rename,
  remove,
  list: async (folder) => (await unlessMissing(readdir(folder))) ?? [],
  touch: async (path) => {
    const now = new Date();
    await utimes(path, now, now);
  },
};
