import type { Outcome } from "../../test/support/search-data.ts";

/**
 * hit@5 with small extra shares for the first ranks and for near misses, so that a choice among weights sees small
 * steps.
 */
export function worth({ rank }: Outcome): number {
  if (rank < 0) return 0;
  if (rank < 1) return 1.12;
  if (rank < 3) return 1.06;
  if (rank < 5) return 1;
  return rank < 7 ? 0.2 : 0.1;
}
