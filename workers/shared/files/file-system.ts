/**
 * The few file system operations that the cache uses, so that a test can make each of them fail. Every member throws
 * what Node throws, unless its comment says otherwise.
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
import { irregularKind, readBytesOrThrow, readTextOrThrow } from "./read-regular.ts";

export interface Found {
  /** The path behind all links. The path need not exist. */
  target: string;
  /**
   * Undefined if the path does not exist. `mode`: the permission bits only. `irregular`: words for anything that is not
   * a regular file. `stamp`: differs as soon as the file is replaced or written.
   */
  file?: { mode: number; bytes: number; modifiedMs: number; stamp: string; irregular?: string };
}

/** The parts of a list are written one after the other. */
export type FileData = Uint8Array | string | readonly Uint8Array[];

/** A new file, open for writing. */
export interface NewFile {
  write(data: FileData): Promise<void>;
  /** Settles when the content is on the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface FileSystem {
  find(path: string): Promise<Found>;
  /** The text of a regular file of at most `limitBytes`. Throws for anything else, with what it is. */
  read(path: string, limitBytes: number): Promise<string>;
  /** The same, without decoding. */
  readBytes(path: string, limitBytes: number): Promise<Buffer>;
  /** Makes a file and the folders above it. Throws `EEXIST` if the path exists. */
  create(path: string, mode: number): Promise<NewFile>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or an empty folder. Does nothing if the path does not exist. */
  remove(path: string): Promise<void>;
  /** Names in a folder; none if the folder does not exist. */
  list(folder: string): Promise<string[]>;
  /** Sets the time of change to now. */
  touch(path: string): Promise<void>;
}

export const codeOf = (error: unknown): string | undefined =>
  (error as NodeJS.ErrnoException | undefined)?.code;

/** The message of an error without the paths that Node appends, so that equal failures have equal messages. */
export const reasonOf = (error: unknown): string => messageOf(error).replace(/ '[^']*'(?: -> '[^']*')?$/, "");

const isMissing = (error: unknown): boolean => codeOf(error) === "ENOENT";

/** The answer of `task`, or undefined if the path does not exist. */
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
  const { size: bytes, mtimeMs: modifiedMs } = found;
  const stamp = [found.dev, found.ino, bytes, modifiedMs, found.ctimeMs].join(" ");
  const file = { mode: found.mode & 0o777, bytes, modifiedMs, stamp };
  return { target: real, file: irregular === undefined ? file : { ...file, irregular } };
}

async function create(path: string, mode: number): Promise<NewFile> {
  await mkdir(dirname(path), { recursive: true, mode: PRIVATE_FOLDER });
  const file = await open(path, "wx", mode);
  return {
    write: async (data) => {
      // `open` applies the umask to the mode.
      await file.chmod(mode);
      await file.writeFile(data);
    },
    sync: () => file.sync(),
    close: () => file.close(),
  };
}

async function remove(path: string): Promise<void> {
  // Looked up first, since not every system refuses `unlink` of a folder.
  const found = await unlessMissing(lstat(path));
  if (found) await unlessMissing(found.isDirectory() ? rmdir(path) : unlink(path));
}

export const nodeFiles: FileSystem = {
  find,
  read: readTextOrThrow,
  readBytes: readBytesOrThrow,
  create,
  rename,
  remove,
  list: async (folder) => (await unlessMissing(readdir(folder))) ?? [],
  touch: async (path) => {
    const now = new Date();
    await utimes(path, now, now);
  },
};
