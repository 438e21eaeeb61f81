/**
 * Finds the names that a written name may stand for: names that are a few slips of the keyboard away. The work for each
 * name is bounded: its length and a mask of its letters exclude most names. Of the others only the part that differs is
 * compared, and there only the cells that so few slips can reach. The walk is in slices, because there may be thousands.
 */
import { createSlices } from "../catalog.ts";

/** Longer names are compared by their start. A name in Pi has at most 64 characters. */
const COMPARED_CHARS = 80;

/** How many slips still count as the same word, by the length of the word. */
const slipsFor = (length: number): number => (length < 5 ? 1 : length < 12 ? 2 : 3);

/** A set of the letters as 32 bits: one bit per letter; digits and `_` share bits. */
function letterMask(name: string): number {
  let mask = 0;
  for (let at = 0; at < name.length; at++) mask |= 1 << (name.charCodeAt(at) & 31);
  return mask;
}

function bitsOf(mask: number): number {
  let bits = 0;
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}

/** Rows of the table of the edit distance, reused for each pair. */
const row = (): Int32Array => new Int32Array(COMPARED_CHARS + 1);
let twoUp = row();
let up = row();
let line = row();

/**
 * Number of letters to add, drop, replace or swap with their neighbour; `most + 1` for more than `most`. Fills only
 * those cells of the table that lie within `most` of its diagonal.
 */
export function slipsBetween(first: string, second: string, most: number): number {
  if (Math.abs(first.length - second.length) > most) return most + 1;
  const a = first.slice(0, COMPARED_CHARS);
  const b = second.slice(0, COMPARED_CHARS);
  let from = 0;
  while (from < a.length && from < b.length && a.charCodeAt(from) === b.charCodeAt(from)) from++;
  let [rows, columns] = [a.length - from, b.length - from];
  while (rows > 0 && columns > 0 && a.charCodeAt(from + rows - 1) === b.charCodeAt(from + columns - 1)) {
    rows--;
    columns--;
  }
  // The cut to COMPARED_CHARS can make lengths differ that were within `most` before.
  if (Math.abs(rows - columns) > most) return most + 1;
  const tooMany = most + 1;
  for (let column = 0; column <= columns; column++) up[column] = Math.min(column, tooMany);
  for (let at = 1; at <= rows; at++) {
    const start = Math.max(1, at - most);
    const end = Math.min(columns, at + most);
    line[start - 1] = start === 1 ? Math.min(at, tooMany) : tooMany;
    let least = line[start - 1] as number;
    for (let column = start; column <= end; column++) {
      const letter = a.charCodeAt(from + at - 1);
      const other = b.charCodeAt(from + column - 1);
      let cost = (up[column - 1] as number) + (letter === other ? 0 : 1);
      // Cells beyond the band hold more than `most`.
      if (column < at + most) cost = Math.min(cost, (up[column] as number) + 1);
      cost = Math.min(cost, (line[column - 1] as number) + 1);
      const isSwapped =
        at > 1 &&
        column > 1 &&
        letter === b.charCodeAt(from + column - 2) &&
        a.charCodeAt(from + at - 2) === other;
      if (isSwapped) cost = Math.min(cost, (twoUp[column - 2] as number) + 1);
      line[column] = cost;
      if (cost < least) least = cost;
    }
    if (least > most) return tooMany;
    const free = twoUp;
    twoUp = up;
    up = line;
    line = free;
  }
  return Math.min(up[columns] as number, tooMany);
}

interface Near {
  at: number;
  slips: number;
}

function keepNearest(found: Near[], most: number): void {
  found.sort((a, b) => a.slips - b.slips || a.at - b.at);
  found.length = Math.min(found.length, most);
}

/** The number of found names at which only the nearest are kept. */
const FOUND_MOST = 64;

/** Positions of the names within a few slips of `written`: the closest first, equally close ones in their order. */
export async function nearestNames(
  written: string,
  names: Iterable<string>,
  most: number,
): Promise<number[]> {
  const wanted = written.slice(0, 2 * COMPARED_CHARS).toLowerCase();
  const slipsMost = slipsFor(wanted.length);
  const mask = letterMask(wanted);
  const found: Near[] = [];
  const slices = createSlices();
  let at = -1;
  for (const name of names) {
    at++;
    const pause = slices.step();
    if (pause) await pause;
    if (Math.abs(name.length - wanted.length) > slipsMost) continue;
    const lower = name.toLowerCase();
    // One slip changes at most two bits of the set of letters.
    if (bitsOf(letterMask(lower) ^ mask) > 2 * slipsMost) continue;
    const slips = slipsBetween(wanted, lower, slipsMost);
    if (slips > slipsMost) continue;
    found.push({ at, slips });
    // Thousands of names may be near. Of equally near names the first ones are kept.
    if (found.length >= FOUND_MOST) keepNearest(found, most);
  }
  keepNearest(found, most);
  return found.map((near) => near.at);
}
