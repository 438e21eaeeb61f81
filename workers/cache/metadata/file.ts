/**
 * `mcp-cache.json` as a whole: its content, or why it cannot be used. Reading changes nothing; the writer decides by
 * the state what may be done to the file. A problem is one line that names the file.
 */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";

import { type FileSystem, reasonOf } from "../../shared/files/file-system.ts";
import type { Slots } from "./slots.ts";

export const CACHE_VERSION = 1;

export type CacheFile =
  /** `text`: the file's text, undefined if there is no file. An equal text need not be parsed again. */
  | { state: "usable"; text: string | undefined; slots: Slots; rest: Record<string, unknown> }
  /** Not a cache file. `kept`: the file is moved aside before a new one is written; false for an empty file. */
  | { state: "corrupt"; text: string; kept: boolean; problem: string }
  /** Must not be changed: another version, unreadable, or too large. */
  | { state: "closed"; problem: string };

/** Parses the text of a cache file. Never throws. */
export function parseCache(path: string, text: string): CacheFile {
  const corrupt = (what: string): CacheFile => ({
    state: "corrupt",
    text,
    kept: true,
    problem: `${path} is not used: ${what}. It is kept as ${path}.corrupt-<date> when a new one is written.`,
  });
  if (text.trim() === "") {
    return { state: "corrupt", text, kept: false, problem: `${path} is not used: it is empty.` };
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
  return { state: "usable", text, slots: new Map(Object.entries(servers)), rest };
}

/** The text of a cache file. Throws if the stored fields of others cannot be written as JSON. */
export const formatCache = (slots: Slots, rest: Record<string, unknown>): string =>
  `${JSON.stringify({ ...rest, version: CACHE_VERSION, servers: Object.fromEntries(slots) })}\n`;

const noCache = (): CacheFile => ({ state: "usable", text: undefined, slots: new Map(), rest: {} });

export interface CacheAccess {
  files: FileSystem;
  /** A larger file is not read. */
  limitBytes: number;
}

/** Reads and parses the file. Answers `known` itself if the file is unchanged. Never throws. */
export async function loadCache(
  path: string,
  { files, limitBytes }: CacheAccess,
  known?: CacheFile,
): Promise<CacheFile> {
  const closed = (why: string): CacheFile => ({
    state: "closed",
    problem: `${path} is neither used nor changed: ${why}.`,
  });
  try {
    const { target, file } = await files.find(path);
    if (!file) return known?.state === "usable" && known.text === undefined ? known : noCache();
    if (file.bytes > limitBytes) {
      return closed(`it is larger than ${limitBytes / 2 ** 20} MiB; delete it to start again`);
    }
    const text = await files.read(target, limitBytes);
    return known && "text" in known && known.text === text ? known : parseCache(path, text);
  } catch (error) {
    return closed(reasonOf(error));
  }
}
