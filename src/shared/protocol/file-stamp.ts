/** How a file stood at one moment, for telling later whether it is still the same. Pure. */
export const fileStamp = (found: { mtimeMs: number; size: number } | undefined): string =>
  found === undefined ? "" : `${found.mtimeMs}:${found.size}`;
