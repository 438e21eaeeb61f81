/**
 * The text of a cache file with one line for each entry, so that a write parses and formats only the entries that it
 * changes: in a file of 3 MB everything else takes 20 ms and leaves as much garbage. Owns the layout, which is plain JSON
 * to any reader. A file of another layout, as other adapters write it, is parsed as a whole. Pure.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import type { SlotChanges } from "../../shared/tasks.ts";
import { changeSlots, type Slots } from "./slots.ts";

const SEPARATOR = ",\n";
const HEAD_END = Buffer.from(',"servers":{\n');
/** JSON of no other layout has these: a string holds no line end, and an indented line begins with a blank. */
const TAIL = "\n}}\n";
const LINE_END = 10;
const HEAD_BYTES = 10_000;

const lineOf = ([key, stored]: [string, unknown]): string =>
  `${JSON.stringify(key)}:${JSON.stringify(stored)}`;

/** The parts of a file, one after the other. */
export type Parts = readonly Buffer[];

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

interface Line {
  /** Where the line begins, and where the next one would. */
  from: number;
  to: number;
  key: string;
  stored: unknown;
}

/** The lines of servers: under a name, and under a name with the start of a hash. Throws if one is not JSON. */
function linesOf(bytes: Buffer, begin: number, servers: readonly string[]): Line[] {
  const starts = servers.map((server) => Buffer.from(JSON.stringify(server).slice(0, -1)).toString("latin1"));
  const longest = Math.max(0, ...starts.map(({ length }) => length)) + 2;
  const isTheirs = (start: string): boolean =>
    starts.some(
      (one) => start.startsWith(one) && (start[one.length] === "#" || start.startsWith('":', one.length)),
    );
  const lines: Line[] = [];
  const end = bytes.length - TAIL.length + 1;
  for (let from = begin, to = 0; from < end; from = to) {
    to = bytes.indexOf(LINE_END, from) + 1;
    if (!isTheirs(bytes.toString("latin1", from, Math.min(from + longest, to)))) continue;
    const text = bytes.toString("utf8", from, to - 1).replace(/,$/, "");
    const [[key, stored] = ["", undefined]] = Object.entries(JSON.parse(`{${text}}`) as object);
    lines.push({ from, to, key, stored });
  }
  return lines;
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
