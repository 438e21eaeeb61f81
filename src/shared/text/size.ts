/** Sizes and times for people and models. Pure. */

const UNITS = ["KB", "MB", "GB"];

/** For example `812 B`, `12.3 KB`, `60 MB`; a KB has 1,024 bytes. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 1023.95 && unit < UNITS.length - 1; unit++) value /= 1024;
  return `${value.toFixed(value < 99.95 ? 1 : 0).replace(/\.0$/, "")} ${UNITS[unit]}`;
}

/** For example `340 ms`, `1.2 s`, `140 s`. */
export const formatMs = (ms: number): string =>
  ms < 999.5 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(ms < 99_950 ? 1 : 0)} s`;
