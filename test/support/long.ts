/**
 * Owns: how often a repeated proof runs: seldom by default, and as often as the variables of `test/long.env` say under
 * `npm run test:long`.
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
