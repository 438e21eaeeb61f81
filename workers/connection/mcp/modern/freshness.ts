/** How long a list of tools counts, by what the server says of its pages (MCP 2026-07-28, `ttlMs`). Pure. */
import { FRESH_LEAST_MS, FRESH_MOST_MS } from "./limits.ts";

/** Both in milliseconds since the epoch. */
export interface Freshness {
  until: number;
  /** When the tools were listed over this connection; undefined: not yet. */
  listedAt: number | undefined;
}

/** The freshness after one page of the list. Each page counts from its request, and the first one begins a new list. */
export function afterPage(
  before: Freshness,
  { isFirst, ttlMs, sentAt }: { isFirst: boolean; ttlMs: unknown; sentAt: number },
): Freshness {
  const until = sentAt + (typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, FRESH_MOST_MS) : 0);
  return { until: isFirst ? until : Math.min(before.until, until), listedAt: sentAt };
}

/** Whether the list is to be asked for again. A list without a time is asked for only if it is remembered. */
export function isStale({ until, listedAt }: Freshness, now: number): boolean {
  if (listedAt === undefined) return now >= until;
  return until > listedAt && now >= Math.max(until, listedAt + FRESH_LEAST_MS);
}
