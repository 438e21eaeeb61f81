/**
 * The names that somebody may have meant: a few slips of the keyboard away from what was written. Bounded for
 * each name: lengths and a mask of the letters rule most names out, and of the rest only the part that differs is
 * compared, and of that only as much as so few slips can shift. In slices, since there may be thousands.
 */
import { createSlices } from "../catalog.ts";

/** Longer names are compared by their start: a name in Pi has 64 characters at most. */
const COMPARED_CHARS = 80;

/** Slips that still count as the same word, by its length. */
const slipsFor = (length: number): number => (length < 5 ? 1 : length < 12 ? 2 : 3);

/** One bit a letter, `_` and digits in a few bits of their own. */
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

/** Rows of the table that is being filled, used again for each pair. */
const row = (): Int32Array => new Int32Array(COMPARED_CHARS + 1);
let twoUp = row();
let up = row();
let line = row();

/**
 * Letters to add, drop, replace or swap with their neighbour; `most + 1` for more than `most`. Of the table only the
 * cells are filled that lie within `most` of its diagonal.
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
  // Names longer than what is compared may differ in length only there.
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
      // What lies beyond the band is more than `most`.
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

/** Found names are sorted out when there are so many. */
const FOUND_MOST = 64;

/** Positions of the names within a few slips of `written`, closest first, then as they stand. */
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
    // One slip changes the set of letters by two at most.
    if (bitsOf(letterMask(lower) ^ mask) > 2 * slipsMost) continue;
    const slips = slipsBetween(wanted, lower, slipsMost);
    if (slips > slipsMost) continue;
    found.push({ at, slips });
    // Thousands of names may be near: of those that are as near, the first ones count.
    if (found.length >= FOUND_MOST) keepNearest(found, most);
  }
  keepNearest(found, most);
  return found.map((near) => near.at);
}
