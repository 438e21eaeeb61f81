/** Reads files that somebody else may have put there: regular files alone, and only up to a limit. */

import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { messageOf } from "../../shared/protocol/errors.ts";
import { formatBytes } from "../../shared/text/amounts.ts";

/** Pi's file of trusted folders: room for 100,000 of them. */
export const TRUST_FILE_BYTES = 16 * 1024 * 1024;
/** A file that an argument of a call names, and what a pipe brings as arguments. */
export const ARGUMENT_BYTES = 16 * 1024 * 1024;

/** Opening must not wait for a pipe nor take over a terminal. Windows has neither flag. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

/** The cache of the servers' lists, when a shell completes an address: a larger one would make the tab key slow. */
export const CACHE_BYTES = 8 * 1024 * 1024;

/** `problem`: follows the file's name in a sentence. */
export type Read = { bytes: Buffer } | { problem: string };

function readOpen(file: number, limitBytes: number): Read {
  const stats = fstatSync(file);
  if (!stats.isFile()) return { problem: "is not a regular file" };
  if (stats.size > limitBytes) return { problem: `is larger than ${formatBytes(limitBytes)}` };
  const bytes = Buffer.alloc(stats.size);
  let length = 0;
  for (let read = -1; length < bytes.length && read !== 0; length += read) {
    read = readSync(file, bytes, length, bytes.length - length, length);
  }
  return { bytes: bytes.subarray(0, length) };
}

/** Undefined if there is no such file. Never throws. */
export function readRegular(path: string, limitBytes: number): Read | undefined {
  try {
    // The type is checked before the opening, because opening a device can already have an effect.
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return undefined;
    if (!found.isFile()) return { problem: "is not a regular file" };
    const file = openSync(path, FLAGS);
    try {
      return readOpen(file, limitBytes);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return { problem: `cannot be read (${(error as NodeJS.ErrnoException).code ?? messageOf(error)})` };
  }
}
