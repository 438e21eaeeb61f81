/**
 * Finds the names that a written name may stand for: names that are a few slips of the keyboard away. The work for each
 * name is bounded: its length and a mask of its letters exclude most names, and shared/text/slips.ts compares the others
 * within limits. The walk is in slices, because there may be thousands of names.
 */
import { COMPARED_CHARS, slipsBetween } from "../../shared/text/reading.ts";
import { createSlices } from "../catalog.ts";

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
