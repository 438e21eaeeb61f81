/** Spans of time for people. Pure. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** For example `less than a min`, `42 min`, `5 h`, `3 days`; rounded down, so that it is never promised too long. */
export function durationText(ms: number): string {
  if (ms < MINUTE_MS) return "less than a min";
  if (ms < 2 * HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  if (ms < 2 * DAY_MS) return `${Math.floor(ms / HOUR_MS)} h`;
  return `${Math.floor(ms / DAY_MS)} days`;
}
