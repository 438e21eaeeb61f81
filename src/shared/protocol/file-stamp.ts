/** The state of a file at one moment, to find out later whether the file has changed. Empty: no file. Pure. */
export const fileStamp = (found: { mtimeMs: number; size: number } | undefined): string =>
  found === undefined ? "" : `${found.mtimeMs}:${found.size}`;
