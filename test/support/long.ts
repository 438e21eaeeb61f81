/**
 * Owns: how much of a proof that repeats itself a run does: a small share by default, all of it where `test/long.env`
 * sets the variables, as `npm run test:long` does.
 */

/** The number of the environment variable, or `small` where it is not set. Throws where it is no positive number. */
export function repeats(variable: string, small: number): number {
  const text = process.env[variable];
  if (text === undefined) return small;
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new Error(`${variable}=${text} is not a positive number`);
  return count;
}
