/**
 * Finds a term in an index without decoding the vocabulary: a hash table for exact terms, binary search in the sorted
 * vocabulary for prefixes. build/ranked.ts fills the hash table by `fillSlots`.
 */
import { fnv1a } from "../../naming.ts";
import type { IndexArrays, ToolIndex } from "./index-format.ts";

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
