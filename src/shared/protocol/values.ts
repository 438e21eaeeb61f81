/** Small judgements of values from outside, for both sides. Pure. */

/** The state of a file at one moment, to find out later whether the file has changed. Empty: no file. Pure. */
export const fileStamp = (found: { mtimeMs: number; size: number } | undefined): string =>
  found === undefined ? "" : `${found.mtimeMs}:${found.size}`;

/** Whether a value is an object with keys: neither null nor a list. For values from outside. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value if it is a list, or an empty list. For values from outside. */
export const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
