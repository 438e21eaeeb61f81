/**
 * Owns: how many slips of the keyboard lie between two words. Called by: the search for the name that somebody may
 * have meant, for tools on the main thread and for keys of a configuration file in the worker. Pure.
 */

/** Longer words are compared by their start: a name in Pi has 64 characters at most. */
export const COMPARED_CHARS = 80;

/** The rows of the table, used again for each pair of words. */
const row = (): Int32Array => new Int32Array(COMPARED_CHARS + 1);
let twoUp = row();
let up = row();
let line = row();

/**
 * The number of letters to add, drop, replace or swap with their neighbour, or `most + 1` if the number is larger
 * than `most`. Only the cells within `most` of the table's diagonal are filled.
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
  // Words longer than COMPARED_CHARS may differ in length only behind that many characters.
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
      // The cells beyond the band hold more than `most`.
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
