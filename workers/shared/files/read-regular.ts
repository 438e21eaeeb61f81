/**
 * Reads or appends to a file whose path others decide: a project, a clone, another program, a user's folder. Owns the rule
 * that only a regular file is touched, without waiting for anything, and that never more than the given number of bytes is read.
 *
 * A path may lead to a terminal, whose keys the reader would take away, to a pipe that nobody ever writes to, or to
 * a device without an end. `stat` finds these before the path is opened, since opening a device can already change it.
 * The opened file is checked again, because another file may have taken its place meanwhile.
 *
 * A symbolic link to a regular file is followed. A file system that does not answer is not covered.
 */

import { constants, type Stats, type StatsBase } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { lackRemedy } from "../../../src/shared/protocol/errors.ts";
import { give } from "./owner.ts";

export const codeOf = (error: unknown): string | undefined =>
  (error as NodeJS.ErrnoException | undefined)?.code;

export type Unread =
  | { kind: "missing" }
  /** `what`: words with an article, for example `a named pipe`. */
  | { kind: "irregular"; what: string }
  | { kind: "too-large"; limitBytes: number }
  /** `error`: what the file system threw. */
  | { kind: "unreadable"; code: string; error: Error };

type RegularBytes = { kind: "bytes"; bytes: Buffer<ArrayBuffer> } | Unread;
type RegularText = { kind: "text"; text: string } | Unread;

/** Without O_NONBLOCK, reading a file of the kernel may wait. Windows has neither flag. */
const NO_WAIT = (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);
const READ = constants.O_RDONLY | NO_WAIT;
const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | NO_WAIT;
const FIRST_CHUNK_BYTES = 64 * 1024;

/** The limit for a package.json, a shim of npm or a settings file, which are far smaller. */
export const SMALL_FILE_BYTES = 1024 * 1024;

/** Words for anything that is not a regular file; undefined for a regular file. */
export function irregularKind(stats: StatsBase<unknown>): string | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isDirectory()) return "a folder";
  if (stats.isFIFO()) return "a named pipe";
  if (stats.isSocket()) return "a socket";
  if (stats.isCharacterDevice()) return "a terminal or another device";
  return stats.isBlockDevice() ? "a disk device" : "something unknown";
}

function failure(error: unknown): Unread {
  const { code = "unknown error" } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") return { kind: "missing" };
  return { kind: "unreadable", code, error: error instanceof Error ? error : new Error(String(error)) };
}

/** At most `most` bytes from the start. The size that the file claims decides only the size of the first buffer. */
async function readUpTo(file: FileHandle, most: number, claimed: number): Promise<Buffer<ArrayBuffer>> {
  let buffer = Buffer.allocUnsafe(Math.min(most, Math.max(claimed + 1, FIRST_CHUNK_BYTES)));
  let length = 0;
  while (length < most) {
    if (length === buffer.length) {
      const larger = Buffer.allocUnsafe(Math.min(most, 2 * length));
      buffer.copy(larger);
      buffer = larger;
    }
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

/** Runs `task` on the opened regular file, which is closed afterwards. */
async function withRegular<T>(
  path: string,
  task: (file: FileHandle, size: number) => Promise<T>,
): Promise<T | Unread> {
  try {
    const found = irregularKind(await stat(path));
    if (found !== undefined) return { kind: "irregular", what: found };
    const file = await open(path, READ);
    try {
      const stats = await file.stat();
      const what = irregularKind(stats);
      return what === undefined ? await task(file, stats.size) : { kind: "irregular", what };
    } finally {
      await file.close();
    }
  } catch (error) {
    return failure(error);
  }
}

/** The whole file, or why it was not read. Never throws. */
export const readRegular = (path: string, limitBytes: number): Promise<RegularBytes> =>
  withRegular(path, async (file, size): Promise<RegularBytes> => {
    if (size > limitBytes) return { kind: "too-large", limitBytes };
    // A growing file, or a file of the kernel, which claims to be empty, has more bytes than it says.
    const bytes = await readUpTo(file, limitBytes + 1, size);
    return bytes.length > limitBytes ? { kind: "too-large", limitBytes } : { kind: "bytes", bytes };
  });

/** The first `most` bytes of a file, or all of a shorter file. Never throws. */
export const readStart = (path: string, most: number): Promise<RegularBytes> =>
  withRegular(path, async (file) => ({ kind: "bytes", bytes: await readUpTo(file, most, most) }));

/** The last `most` bytes of a file, and the size of all of it. Never throws. */
export const readEnd = (
  path: string,
  most: number,
): Promise<{ kind: "end"; bytes: Buffer<ArrayBuffer>; size: number } | Unread> =>
  withRegular(path, async (file, size) => {
    const length = Math.min(most, size);
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, size - length);
    return { kind: "end" as const, bytes: buffer.subarray(0, bytesRead), size };
  });

/** The whole file as UTF-8 with its BOM, or why it was not read. Never throws. */
export async function readRegularText(path: string, limitBytes: number): Promise<RegularText> {
  const read = await readRegular(path, limitBytes);
  return read.kind === "bytes" ? { kind: "text", text: read.bytes.toString("utf8") } : read;
}

/** The bytes, or an error whose `code` says what is wrong, for callers that handle errors of the file system. */
export async function readBytesOrThrow(path: string, limitBytes: number): Promise<Buffer> {
  const read = await readRegular(path, limitBytes);
  if (read.kind === "bytes") return read.bytes;
  if (read.kind === "unreadable") throw read.error;
  const code = read.kind === "missing" ? "ENOENT" : read.kind === "too-large" ? "EFBIG" : "EINVAL";
  throw Object.assign(new Error(whyUnread(read)), { code });
}

/** The same as text. */
export const readTextOrThrow = async (path: string, limitBytes: number): Promise<string> =>
  (await readBytesOrThrow(path, limitBytes)).toString("utf8");

/** For example `1 MiB`; in bytes if that is not a whole number of MiB. */
const sizeText = (bytes: number): string =>
  bytes % 2 ** 20 === 0 ? `${bytes / 2 ** 20} MiB` : `${bytes.toLocaleString("en")} bytes`;

/** Why a file was not read, as the part of a sentence behind a colon, without the path. */
export function whyUnread(read: Unread): string {
  switch (read.kind) {
    case "missing":
      return "there is no such file";
    case "irregular":
      // People search for the code.
      return `${read.what === "a folder" ? "EISDIR: " : ""}it is ${read.what}, not a regular file`;
    case "too-large":
      return `it is larger than ${sizeText(read.limitBytes)}`;
    case "unreadable":
      if (read.code === "ELOOP") return "ELOOP: it is a link that leads back to itself";
      return read.error.message;
  }
}

function refuseIrregular(path: string, stats: Stats): void {
  const what = irregularKind(stats);
  if (what !== undefined) throw new Error(`${path}: ${whyUnread({ kind: "irregular", what })}`);
}

/** Size of the regular file in bytes; 0 if there is none. Throws if the path leads to anything else. */
export async function regularSize(path: string): Promise<number> {
  try {
    const found = await stat(path);
    refuseIrregular(path, found);
    return found.size;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return 0;
    throw error;
  }
}

/** Appends the text; a new file is private. Throws if the path leads to anything but a regular file. */
export async function appendRegular(path: string, text: string): Promise<void> {
  // The opening itself can do something to a device, so the path is looked at before.
  await regularSize(path);
  const file = await open(path, APPEND, PRIVATE_FILE);
  try {
    // Another file may have taken the place meanwhile.
    const found = await file.stat();
    refuseIrregular(path, found);
    if (found.size === 0 && found.uid === 0) await give(file, dirname(path));
    await file.appendFile(text);
  } finally {
    await file.close();
  }
}

/** What the user can do about it. */
export function remedyForUnread(read: Exclude<Unread, { kind: "missing" }>): string {
  const lack = read.kind === "unreadable" ? lackRemedy(read.error) : undefined;
  if (lack !== undefined) return lack;
  if (read.kind === "too-large") return "Make the file smaller, or delete it.";
  if (read.kind === "irregular" || read.code === "ELOOP") return "Put a regular file there, or delete it.";
  return "Make the file readable, or delete it.";
}

/** Modes of what the extension writes: only the user may read it (docs/limits.md). */
export const PRIVATE_FILE = 0o600;
export const PRIVATE_FOLDER = 0o700;
