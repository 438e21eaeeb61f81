/**
 * Owns the bytes of a search index: a header, a table of sections, and flat typed arrays.
 * The reader makes views of the given buffer and copies nothing, so opening costs the same at any size. Written by
 * build.ts in a worker; read on the main thread by ranked.ts and pins.ts.
 *
 * header  u32 x 9: magic, version, byte-order mark, tools, terms, impact scale (f32), sections, total bytes, name words
 * table   u32 x 2 for each section: byte offset, length in elements. Each section starts at a multiple of 4.
 */
import { fnv1a } from "../naming.ts";

const magic = 0x4b52_504d; // "MPRK" in little-endian order
const INDEX_VERSION = 1;
const byteOrderMark = 0x0102_0304;
const headerWords = 9;

/** A posting holds a tool in the upper bits and a quantised impact in the lower bits: 2^20 tools, 4,096 levels. */
export const IMPACT_BITS = 12;
export const MAX_TOOLS = 2 ** (32 - IMPACT_BITS);
/** A packed relation holds a term in the upper bits and a weight of 0..255 in the lower bits. */
export const WEIGHT_BITS = 8;

type IndexArrays = {
  /** Terms in code-unit order: characters of term i are termChars[termStart[i]..termStart[i + 1]]. */
  readonly termStart: Uint32Array;
  readonly termChars: Uint16Array;
  /** Hash table with open addressing; its length is a power of two. An element is term + 1, or 0 for a free slot. */
  readonly termSlots: Uint32Array;
  readonly termIdf: Float32Array;
  /** Tools of term i, ascending: postings[postingStart[i]..postingStart[i + 1]], packed with IMPACT_BITS. */
  readonly postingStart: Uint32Array;
  readonly postings: Uint32Array;
  /** Terms that may stand for term i, packed with WEIGHT_BITS. */
  readonly variantStart: Uint32Array;
  readonly variants: Uint32Array;
  /** Terms of tool i's own name with their share of the name, packed with WEIGHT_BITS. */
  readonly nameStart: Uint32Array;
  readonly nameTerms: Uint32Array;
  readonly toolServer: Uint32Array;
  /** Actions that the tool's name says, as bits (words.ts). */
  readonly toolAction: Uint16Array;
  /** Server names, in order of first appearance. */
  readonly serverStart: Uint32Array;
  readonly serverChars: Uint16Array;
  /** Pin keys sorted by (high, low): three words each, hash high, hash low, tool with pin flags. */
  readonly pins: Uint32Array;
};

export type ToolIndex = IndexArrays & {
  readonly toolCount: number;
  readonly termCount: number;
  /** The most words in a tool name with spaces; 1 if no name has spaces. */
  readonly nameWords: number;
  /** Factor from a quantised impact to the impact. */
  readonly impactScale: number;
};

const layout = [
  ["termStart", Uint32Array],
  ["termSlots", Uint32Array],
  ["termIdf", Float32Array],
  ["postingStart", Uint32Array],
  ["postings", Uint32Array],
  ["variantStart", Uint32Array],
  ["variants", Uint32Array],
  ["nameStart", Uint32Array],
  ["nameTerms", Uint32Array],
  ["toolServer", Uint32Array],
  ["serverStart", Uint32Array],
  ["pins", Uint32Array],
  ["termChars", Uint16Array],
  ["serverChars", Uint16Array],
  ["toolAction", Uint16Array],
] as const;

export function writeIndex(index: ToolIndex): Uint8Array<ArrayBuffer> {
  const tableWords = layout.length * 2;
  let end = (headerWords + tableWords) * 4;
  const table: number[] = [];
  for (const [name] of layout) {
    table.push(end, index[name].length);
    end += Math.ceil(index[name].byteLength / 4) * 4;
  }
  const bytes = new Uint8Array(end);
  const head = new Uint32Array(bytes.buffer, 0, headerWords + tableWords);
  head.set([
    magic,
    INDEX_VERSION,
    byteOrderMark,
    index.toolCount,
    index.termCount,
    0,
    layout.length,
    end,
    index.nameWords,
  ]);
  new Float32Array(bytes.buffer, 20, 1)[0] = index.impactScale;
  head.set(table, headerWords);
  layout.forEach(([name], section) => {
    const array = index[name];
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), table[section * 2]);
  });
  return bytes;
}

/**
 * Makes views of `bytes`. Bytes that do not start at a multiple of 4 are copied once, since no view can cover them: a
 * larger file should align the index that it holds. Throws a RangeError for bytes that are not an index of this version
 * and byte order; the caller then builds the index again, since it is derived data.
 */
export function openIndex(bytes: Uint8Array): ToolIndex {
  const source = bytes.byteOffset % 4 === 0 ? bytes : bytes.slice();
  const { buffer, byteOffset, byteLength } = source;
  const headBytes = (headerWords + layout.length * 2) * 4;
  if (byteLength < headBytes)
    throw new RangeError(`search index: ${byteLength} bytes are too few for a header`);
  const head = new Uint32Array(buffer, byteOffset, headBytes / 4);
  if (head[2] !== byteOrderMark) throw new RangeError("search index: written with another byte order");
  if (head[0] !== magic || head[1] !== INDEX_VERSION)
    throw new RangeError(`search index: version ${head[1]}, expected ${INDEX_VERSION}`);
  if (head[6] !== layout.length)
    throw new RangeError(`search index: ${head[6]} sections, expected ${layout.length}`);
  if (head[7]! > byteLength)
    throw new RangeError(`search index: cut off at ${byteLength} of ${head[7]} bytes`);
  const view = <A>(
    section: number,
    array: { new (buffer: ArrayBufferLike, offset: number, length: number): A; BYTES_PER_ELEMENT: number },
  ): A => {
    const offset = head[headerWords + section * 2]!;
    const length = head[headerWords + section * 2 + 1]!;
    if (offset % 4 !== 0 || offset < headBytes || offset + length * array.BYTES_PER_ELEMENT > head[7]!) {
      throw new RangeError(`search index: section ${layout[section]![0]} lies outside the index`);
    }
    return new array(buffer, byteOffset + offset, length);
  };
  const toolCount = head[3]!;
  const termCount = head[4]!;
  const index: ToolIndex = {
    toolCount,
    termCount,
    nameWords: head[8]!,
    impactScale: new Float32Array(buffer, byteOffset + 20, 1)[0]!,
    termStart: view(0, Uint32Array),
    termSlots: view(1, Uint32Array),
    termIdf: view(2, Float32Array),
    postingStart: view(3, Uint32Array),
    postings: view(4, Uint32Array),
    variantStart: view(5, Uint32Array),
    variants: view(6, Uint32Array),
    nameStart: view(7, Uint32Array),
    nameTerms: view(8, Uint32Array),
    toolServer: view(9, Uint32Array),
    serverStart: view(10, Uint32Array),
    pins: view(11, Uint32Array),
    termChars: view(12, Uint16Array),
    serverChars: view(13, Uint16Array),
    toolAction: view(14, Uint16Array),
  };
  const perTerm = [index.termStart, index.postingStart, index.variantStart];
  if (
    perTerm.some((array) => array.length !== termCount + 1) ||
    index.nameStart.length !== toolCount + 1 ||
    index.toolServer.length !== toolCount
  ) {
    throw new RangeError("search index: sections disagree on how many tools and terms there are");
  }
  return index;
}

/** The text of one entry of a string table. */
export function stringAt(start: Uint32Array, chars: Uint16Array, entry: number): string {
  const end = start[entry + 1]!;
  let text = "";
  for (let at = start[entry]!; at < end; at += 4_096)
    text += String.fromCharCode(...chars.subarray(at, Math.min(end, at + 4_096)));
  return text;
}

/** The hash table of the terms. At most half of the slots are taken, so a probe ends after one or two steps. */
export function fillSlots(terms: readonly string[]): Uint32Array {
  let size = 16;
  while (size < terms.length * 2) size *= 2;
  const slots = new Uint32Array(size);
  terms.forEach((term, id) => {
    let slot = fnv1a(term) & (size - 1);
    while (slots[slot] !== 0) slot = (slot + 1) & (size - 1);
    slots[slot] = id + 1;
  });
  return slots;
}

/** The term's id, or -1. */
export function findTerm(index: ToolIndex, term: string): number {
  const mask = index.termSlots.length - 1;
  for (let slot = fnv1a(term) & mask, steps = 0; steps <= mask; slot = (slot + 1) & mask, steps++) {
    const entry = index.termSlots[slot]!;
    if (entry === 0) return -1;
    if (compare(index, entry - 1, term, false) === 0) return entry - 1;
  }
  return -1;
}

/** Whether any tool has the term. A term without tools exists only for its relations. */
export function hasTools({ postingStart }: IndexArrays, term: number): boolean {
  return term >= 0 && postingStart[term + 1]! > postingStart[term]!;
}

/** Ids of the terms that start with `prefix`, from `first` to before `end`. */
export function prefixRange(index: ToolIndex, prefix: string): { first: number; end: number } {
  return { first: bound(index, prefix, false), end: bound(index, prefix, true) };
}

function bound(index: ToolIndex, prefix: string, after: boolean): number {
  let low = 0;
  let high = index.termCount;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const order = compare(index, middle, prefix, after);
    if (order < 0 || (after && order === 0)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Compares a stored term with `text`. With `asPrefix` a term that starts with `text` counts as equal. */
function compare(
  { termStart, termChars }: IndexArrays,
  term: number,
  text: string,
  asPrefix: boolean,
): number {
  const start = termStart[term]!;
  const length = termStart[term + 1]! - start;
  const shared = Math.min(length, text.length);
  for (let at = 0; at < shared; at++) {
    const difference = termChars[start + at]! - text.charCodeAt(at);
    if (difference !== 0) return difference;
  }
  if (asPrefix && length >= text.length) return 0;
  return length - text.length;
}
