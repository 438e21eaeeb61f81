/**
 * The names that somebody may have meant: a few slips of the keyboard away from what was written. Bounded for
 * each name: lengths and a mask of the letters rule most names out, and of the rest only the part that differs is
 * compared, and of that only as much as so few slips can shift. In slices, since there may be thousands.
 */
import { COMPARED_CHARS, slipsBetween } from "../../shared/text/slips.ts";
import { createSlices } from "../catalog.ts";

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
