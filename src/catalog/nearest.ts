/**
 * The names that somebody may have meant: a few slips of the keyboard away from what was written. Bounded:
 * a mask of the letters rules most names out, and only the rest is compared letter by letter. Pure.
 */

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

/** Letters to add, drop, replace or swap with their neighbour; `most + 1` for more than `most`. */
export function slipsBetween(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1;
  let twoUp: number[] = [];
  let up = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const line = [row];
    let least = row;
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const cost = Math.min(
        (up[column] ?? 0) + 1,
        (line[column - 1] ?? 0) + 1,
        (up[column - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (twoUp[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
      line.push(cost);
      least = Math.min(least, cost);
    }
    if (least > most) return most + 1;
    [twoUp, up] = [up, line];
  }
  return Math.min(up[b.length] ?? 0, most + 1);
}

/** Positions of the names within a few slips of `written`, closest first, then as they stand. */
export function nearestNames(written: string, names: readonly string[], count: number): number[] {
  const wanted = written.toLowerCase();
  const most = slipsFor(wanted.length);
  const mask = letterMask(wanted);
  const found: { at: number; slips: number }[] = [];
  names.forEach((name, at) => {
    if (Math.abs(name.length - wanted.length) > most) return;
    const lower = name.toLowerCase();
    // One slip changes the set of letters by two at most.
    if (bitsOf(letterMask(lower) ^ mask) > 2 * most) return;
    const slips = slipsBetween(wanted, lower, most);
    if (slips <= most) found.push({ at, slips });
  });
  return found
    .sort((a, b) => a.slips - b.slips || a.at - b.at)
    .slice(0, count)
    .map(({ at }) => at);
}
