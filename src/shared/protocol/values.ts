/** Small judgements of values from outside, for both sides. Pure. */

/** What changes with each edit of a file, also with one that keeps size and time. Empty: no file. */
export const fileStamp = (
  found: { ino: number; size: number; mtimeMs: number; ctimeMs: number } | undefined,
): string => (found ? [found.ino, found.size, found.mtimeMs, found.ctimeMs].join(" ") : "");

/** Whether a value is an object with keys: neither null nor a list. For values from outside. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value if it is a list, or an empty list. For values from outside. */
export const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
