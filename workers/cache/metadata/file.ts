/**
 * `mcp-cache.json` as a whole: its content, or why it cannot be used. Reading changes nothing; the writer decides by
 * the state what may be done to the file. A problem is one line that names the file. Each server has a line, whose tools
 * stand last, so that a start need not parse them.
 */

import { createHash, hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { type FileSystem, reasonOf } from "../../shared/files/file-system.ts";
import {
  type CachedTool,
  type ListMark,
  listMark,
  markOf,
  normalizeTools,
  StoredTools,
  TOOL_FIELDS,
} from "../../shared/listed.ts";
import type { SlotChanges } from "../../shared/tasks.ts";
import { changeSlots, type Slots, withoutVariants } from "./entry.ts";

const CACHE_VERSION = 1;

type CacheFile =
  | { state: "usable"; slots: Slots; rest: Record<string, unknown> }
  /** Not a cache file. `kept`: the file is moved aside before a new one is written; false for an empty file. */
  | { state: "corrupt"; kept: boolean; problem: string }
  /** Must not be changed: another version, unreadable, or too large. */
  | { state: "closed"; problem: string };

/** Parses the text of a cache file, undefined if there is no file. Never throws. */
function parseCache(path: string, text: string | undefined): CacheFile {
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
const formatCache = (slots: Slots, rest: Record<string, unknown>): Parts =>
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

/** What the file becomes. */
export interface Next {
  all: readonly SlotChanges[];
  nowMs: number;
  /** The file would be too large: the entries of other definitions leave it. */
  isFull?: boolean;
}

/** The file as it must be after the changes. Throws if the stored fields of others cannot be written. */
export function nextFile(
  path: string,
  bytes: Buffer | undefined,
  { all, nowMs, isFull = false }: Next,
): NextFile {
  const changed = bytes && !isFull ? changeLines(bytes, CACHE_VERSION, all, nowMs) : undefined;
  // Only the whole file tells whether it is broken elsewhere. A session that learns all tools again because of that
  // comes here with what the file has.
  if (changed && changed.length > 0) return { state: "next", parts: changed, broken: undefined };
  const cache = parseCache(path, bytes?.toString("utf8"));
  if (cache.state === "closed") return cache;
  const before: Slots = cache.state === "usable" ? cache.slots : new Map();
  const changedSlots = all.reduce((slots, changes) => changeSlots(slots, changes, nowMs) ?? slots, before);
  const after = isFull ? withoutVariants(changedSlots) : changedSlots;
  const rest = cache.state === "usable" ? cache.rest : {};
  return {
    state: "next",
    parts: after === before ? [] : formatCache(after, rest),
    broken: cache.state === "corrupt" ? cache : undefined,
  };
}

const SEPARATOR = ",\n";
const HEAD_END = Buffer.from(',"servers":{\n');
/** JSON of no other layout has these: a string holds no line end, and an indented line begins with a blank. */
const TAIL = "\n}}\n";
const LINE_END = 10;
const HEAD_BYTES = 10_000;

const TOOLS = ',"tools":';

const isOwnField = (key: string): boolean => TOOL_FIELDS.includes(key);

/** What a line says of its tools: `bytes` is the hash of their JSON, which differs if others added fields. */
type ToolsMark = ListMark & { bytes: string };

function toolsMark(stored: unknown[], json: string): ToolsMark {
  const bytes = hash("sha256", json);
  const isOurs = stored.every((tool) => isObject(tool) && Object.keys(tool).every(isOwnField));
  return { ...(isOurs ? markOf(stored as CachedTool[], bytes) : listMark(normalizeTools(stored))), bytes };
}

/** The tools stand last, behind what is known of them without reading them. */
function entryText(stored: unknown): string {
  if (!isObject(stored) || !Array.isArray(stored.tools)) return JSON.stringify(stored);
  const { tools, toolsMark: _, ...rest } = stored;
  const json = JSON.stringify(tools);
  return `${JSON.stringify({ ...rest, toolsMark: toolsMark(tools, json) }).slice(0, -1)}${TOOLS}${json}}`;
}

const lineOf = ([key, stored]: [string, unknown]): string => `${JSON.stringify(key)}:${entryText(stored)}`;

/** The parts of a file, one after the other. */
type Parts = readonly Buffer[];

/** `first`: the fields before `servers`, at least one. Throws if a value cannot be written as JSON. */
export const formatLines = (first: Record<string, unknown>, slots: Slots): Parts => [
  Buffer.from(
    `${JSON.stringify(first).slice(0, -1)}${HEAD_END}${[...slots].map(lineOf).join(SEPARATOR)}${TAIL}`,
  ),
];

/** Where the entries begin, or undefined if the file has another layout or version. Throws if it is not JSON. */
function entriesFrom(bytes: Buffer, version: number): number | undefined {
  const from = bytes.indexOf(LINE_END) + 1;
  const head = bytes.subarray(0, Math.min(from, HEAD_BYTES));
  if (
    bytes.toString("latin1", bytes.length - TAIL.length) !== TAIL ||
    !head.subarray(-HEAD_END.length).equals(HEAD_END)
  ) {
    return undefined;
  }
  const first: unknown = JSON.parse(`${head}}}`);
  return isObject(first) && first.version === version ? from : undefined;
}

interface Place {
  /** Where the line begins, and where the next one would. */
  from: number;
  to: number;
}

interface Line extends Place {
  key: string;
  stored: unknown;
}

/** The lines of servers: under a name, and under a name with the start of a hash. */
function placesOf(bytes: Buffer, begin: number, servers: readonly string[]): Place[] {
  const starts = servers.map((server) => Buffer.from(JSON.stringify(server).slice(0, -1)).toString("latin1"));
  const longest = Math.max(0, ...starts.map(({ length }) => length)) + 2;
  const isTheirs = (start: string): boolean =>
    starts.some(
      (one) => start.startsWith(one) && (start[one.length] === "#" || start.startsWith('":', one.length)),
    );
  const places: Place[] = [];
  const end = bytes.length - TAIL.length + 1;
  for (let from = begin, to = 0; from < end; from = to) {
    to = bytes.indexOf(LINE_END, from) + 1;
    if (isTheirs(bytes.toString("latin1", from, Math.min(from + longest, to)))) places.push({ from, to });
  }
  return places;
}

/** The key and the entry of a line, or of its start with what closes it. Throws if that is not JSON. */
function parseLine(text: string): { key: string; stored: unknown } {
  const [[key, stored] = ["", undefined]] = Object.entries(JSON.parse(`{${text}}`) as object);
  return { key, stored };
}

/** Throws if a line is not JSON. */
const linesOf = (bytes: Buffer, begin: number, servers: readonly string[]): Line[] =>
  placesOf(bytes, begin, servers).map((place) => ({
    ...place,
    ...parseLine(bytes.toString("utf8", place.from, place.to - 1).replace(/,$/, "")),
  }));

const isMark = (value: unknown): value is ToolsMark =>
  isObject(value) &&
  Number.isSafeInteger(value.count) &&
  typeof value.hash === "string" &&
  typeof value.bytes === "string" &&
  typeof value.wishes === "boolean";

/** Bytes that are hashed in one turn of the event loop: this may be the thread that serves all servers. */
const TURN_BYTES = 1024 * 1024;

async function hashInTurns(bytes: Buffer): Promise<string> {
  const sum = createHash("sha256");
  for (let at = 0; at < bytes.length; at += TURN_BYTES) {
    sum.update(bytes.subarray(at, at + TURN_BYTES));
    await setImmediate();
  }
  return sum.digest("hex");
}

/** The entry of a line with its tools unread; undefined if the tools are not those that `entryText` wrote. */
async function readUnparsed(line: Buffer): Promise<{ key: string; stored: unknown } | undefined> {
  const at = line.indexOf(TOOLS);
  if (at === -1) return undefined;
  const { key, stored } = parseLine(`${line.toString("utf8", 0, at)}}`);
  const json = line.subarray(at + TOOLS.length, line.lastIndexOf("}"));
  if (!isObject(stored) || !isMark(stored.toolsMark)) return undefined;
  const { bytes, ...mark } = stored.toolsMark;
  // A list without any readable tool is a broken entry.
  if (bytes !== (await hashInTurns(json)) || (mark.count === 0 && json.length > "[]".length))
    return undefined;
  return { key, stored: { ...stored, tools: new StoredTools(mark, json) } };
}

/**
 * The entries of servers, whose tools stay JSON. Undefined if a line of theirs, or the file, must be parsed as a whole.
 * `bytes`: nobody changes them afterwards.
 */
export async function unparsedSlots(bytes: Buffer, servers: readonly string[]): Promise<Slots | undefined> {
  try {
    const begin = entriesFrom(bytes, CACHE_VERSION);
    if (begin === undefined) return undefined;
    const slots: Slots = new Map();
    const places = placesOf(bytes, begin, servers);
    // The tools keep the memory of the whole file. A few of many lines are copied.
    const isMost = places.reduce((sum, { from, to }) => sum + to - from, 0) * 2 > bytes.length;
    for (const { from, to } of places) {
      const read = bytes.subarray(from, to);
      const line = await readUnparsed(isMost ? read : Buffer.from(read));
      if (!line) return undefined;
      slots.set(line.key, line.stored);
    }
    return slots;
  } catch {
    return undefined;
  }
}

/** The file without the lines, and with the new ones at the end. */
function splice(bytes: Buffer, begin: number, gone: readonly Line[], added: readonly string[]): Parts {
  const last = bytes.length - TAIL.length;
  const kept: { from: number; to: number }[] = [];
  let at = begin;
  for (const { from, to } of gone) {
    if (from > at) kept.push({ from: at, to: from });
    at = to;
  }
  // All lines but the last end with a separator.
  if (at < last) kept.push({ from: at, to: last });
  const final = kept.at(-1);
  const isOpen = final !== undefined && final.to < last;
  const parts = [{ from: 0, to: begin }, ...kept].map((part) =>
    bytes.subarray(part.from, part === final && isOpen ? part.to - SEPARATOR.length : part.to),
  );
  const before = final && added.length > 0 ? SEPARATOR : "";
  return [...parts, Buffer.from(`${before}${added.join(SEPARATOR)}${TAIL}`)];
}

/**
 * The file after the changes; an empty list if it holds them already. Undefined if the file must be parsed as a whole:
 * for another layout, for something that is not JSON, and for the uses that are written once a day, since only a look at
 * all entries finds those that nobody needs any more.
 */
export function changeLines(
  bytes: Buffer,
  version: number,
  all: readonly SlotChanges[],
  nowMs: number,
): Parts | undefined {
  if (all.some(({ used }) => Object.keys(used).length > 0)) return undefined;
  try {
    const begin = entriesFrom(bytes, version);
    if (begin === undefined) return undefined;
    const lines = linesOf(
      bytes,
      begin,
      all.flatMap(({ entries }) => Object.keys(entries)),
    );
    const before: Slots = new Map(lines.map(({ key, stored }) => [key, stored]));
    const after = all.reduce((slots, changes) => changeSlots(slots, changes, nowMs) ?? slots, before);
    const gone = lines.filter(({ key, stored }) => after.get(key) !== stored);
    const added = [...after].filter(([key, stored]) => before.get(key) !== stored).map(lineOf);
    return gone.length + added.length === 0 ? [] : splice(bytes, begin, gone, added);
  } catch {
    return undefined;
  }
}
