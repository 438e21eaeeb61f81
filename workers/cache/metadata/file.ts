/**
 * `mcp-cache.json` as a whole: its content, or why it cannot be used. Reading changes nothing; the writer decides by
 * the state what may be done to the file. A problem is one line that names the file.
 */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";

import { type FileSystem, reasonOf } from "../../shared/files/file-system.ts";
import type { SlotChanges } from "../../shared/tasks.ts";
import { changeLines, formatLines, type Parts } from "./lines.ts";
import { changeSlots, type Slots } from "./slots.ts";

export const CACHE_VERSION = 1;

export type CacheFile =
  | { state: "usable"; slots: Slots; rest: Record<string, unknown> }
  /** Not a cache file. `kept`: the file is moved aside before a new one is written; false for an empty file. */
  | { state: "corrupt"; kept: boolean; problem: string }
  /** Must not be changed: another version, unreadable, or too large. */
  | { state: "closed"; problem: string };

/** Parses the text of a cache file, undefined if there is no file. Never throws. */
export function parseCache(path: string, text: string | undefined): CacheFile {
  if (text === undefined) return { state: "usable", slots: new Map(), rest: {} };
  const corrupt = (what: string): CacheFile => ({
    state: "corrupt",
    kept: true,
    problem: `${path} is not used: ${what}. It is kept as ${path}.corrupt-<date> when a new one is written.`,
  });
  if (text.trim() === "") {
    return { state: "corrupt", kept: false, problem: `${path} is not used: it is empty.` };
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return corrupt(`it is not complete JSON (${messageOf(error)})`);
  }
  if (isObject(parsed) && parsed.version !== undefined && parsed.version !== CACHE_VERSION) {
    const version = JSON.stringify(parsed.version)?.slice(0, 40);
    const problem = `${path} is neither used nor changed: its version is ${version}, not ${CACHE_VERSION}.`;
    return { state: "closed", problem };
  }
  if (!isObject(parsed) || parsed.version !== CACHE_VERSION || !isObject(parsed.servers)) {
    return corrupt("it is not a cache file");
  }
  const { version: _version, servers, ...rest } = parsed;
  return { state: "usable", slots: new Map(Object.entries(servers)), rest };
}

/** A cache file. Throws if the stored fields of others cannot be written as JSON. */
export const formatCache = (slots: Slots, rest: Record<string, unknown>): Parts =>
  formatLines({ ...rest, version: CACHE_VERSION }, slots);

export interface CacheAccess {
  files: FileSystem;
  /** A larger file is not read. */
  limitBytes: number;
}

/** `stamp`: differs as soon as the file is replaced or written. Both undefined: there is no file. */
export interface CacheBytes {
  bytes: Buffer | undefined;
  stamp: string | undefined;
}

/**
 * The bytes of the file, or why it is not used. Answers `known` itself if the file is unchanged. Never throws.
 */
export async function readCacheBytes(
  path: string,
  { files, limitBytes }: CacheAccess,
  known?: CacheBytes,
): Promise<CacheBytes | (CacheFile & { state: "closed" })> {
  const closed = (why: string): CacheFile & { state: "closed" } => ({
    state: "closed",
    problem: `${path} is neither used nor changed: ${why}.`,
  });
  try {
    const { target, file } = await files.find(path);
    if (known && known.stamp === file?.stamp) return known;
    if (!file) return { bytes: undefined, stamp: undefined };
    if (file.bytes > limitBytes) {
      return closed(`it is larger than ${limitBytes / 2 ** 20} MiB; delete it to start again`);
    }
    return { bytes: await files.readBytes(target, limitBytes), stamp: file.stamp };
  } catch (error) {
    return closed(reasonOf(error));
  }
}

/** Reads and parses the file. Never throws. */
export async function loadCache(path: string, access: CacheAccess): Promise<CacheFile> {
  const read = await readCacheBytes(path, access);
  return "state" in read ? read : parseCache(path, read.bytes?.toString("utf8"));
}

export type NextFile =
  | (CacheFile & { state: "closed" })
  /** `parts`: what the file must hold, empty if it holds it already. `broken`: the file that a write replaces. */
  | { state: "next"; parts: Parts; broken: (CacheFile & { state: "corrupt" }) | undefined };

/** The file as it must be after the changes. Throws if the stored fields of others cannot be written. */
export function nextFile(
  path: string,
  bytes: Buffer | undefined,
  all: readonly SlotChanges[],
  nowMs: number,
): NextFile {
  const changed = bytes && changeLines(bytes, CACHE_VERSION, all, nowMs);
  // Only the whole file tells whether it is broken elsewhere. A session that learns all tools again because of that
  // comes here with what the file has.
  if (changed && changed.length > 0) return { state: "next", parts: changed, broken: undefined };
  const cache = parseCache(path, bytes?.toString("utf8"));
  if (cache.state === "closed") return cache;
  const before: Slots = cache.state === "usable" ? cache.slots : new Map();
  const after = all.reduce((slots, changes) => changeSlots(slots, changes, nowMs) ?? slots, before);
  const rest = cache.state === "usable" ? cache.rest : {};
  return {
    state: "next",
    parts: after === before ? [] : formatCache(after, rest),
    broken: cache.state === "corrupt" ? cache : undefined,
  };
}
