/** Sizes, times and counts for people and models. Pure. */
import type { ServerStatus } from "../protocol/session.ts";

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

/** For example `12,345`. Of a whole number; Intl takes 20 ms for the first one, which a key press would wait for. */
export const grouped = (count: number): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");

/** For example `1 tool`, `3 tools`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** For example `3 tools, 1 resource`. */
export function offerText({ toolsKnown, toolCount, resourceCount, skillCount = 0 }: ServerStatus): string {
  if (!toolsKnown) return "tools unknown";
  const resources = resourceCount === 0 ? "" : `, ${counted(resourceCount, "resource")}`;
  const skills = skillCount === 0 ? "" : `, ${counted(skillCount, "skill")}`;
  return `${counted(toolCount, "tool")}${resources}${skills}`;
}

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
