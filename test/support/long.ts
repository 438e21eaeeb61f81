/**
 * Owns: how much a repeated proof does. By default a repetition runs seldom, an amount is small, a family of rows runs
 * one of them, and no second proof runs. `ALL_ROWS=1` runs them; `npm run test:long` sets all variables of `test/long.env`.
 */

/**
 * The number in the environment variable, or `small` if it is not set. Throws if the value is not a positive integer.
 */
export function repeats(variable: string, small: number): number {
  const text = process.env[variable];
  if (text === undefined) return small;
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new Error(`${variable}=${text} is not a positive number`);
  return count;
}

/** True under `ALL_ROWS=1`. */
export const ALL_ROWS = repeats("ALL_ROWS", 0) > 0;

/**
 * The tag of a second proof: its rule has another test, of the unit, in a worker thread or in the real Pi, and a run in
 * which somebody waits for the result does not pay for both. The tagged tests run under `ALL_ROWS=1`.
 */
export const THOROUGH = "thorough";

/** An amount of random cases: `whole` under `ALL_ROWS=1`, else `small`. */
export const amount = (small: number, whole: number): number => (ALL_ROWS ? whole : small);

/** True in `npm run test:long`. */
export const IS_WHOLE = repeats("HOSTILE_WHOLE", 0) > 0;

/** The size of an attack: `small` is just above the limit that it is about, `whole` is for `npm run test:long`. */
export const sized = <T>(small: T, whole: T): T => (IS_WHOLE ? whole : small);

/**
 * Rows that prove one rule by different members: all of them under `ALL_ROWS=1`, else only the first one. Rows that
 * reach different branches of the code are no family.
 */
export const family = <T>(rows: readonly [T, ...T[]]): readonly T[] => (ALL_ROWS ? rows : rows.slice(0, 1));
