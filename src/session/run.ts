/** A search that the person tries, as ToolSearch would rank it. Loaded with the first one. */
import type { Catalog } from "../catalog/catalog.ts";
import { likelyHits, searchCatalog } from "../catalog/search/search.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { TriedSearch } from "../ui/panel/panel.ts";

/** `likely`: as many as ToolSearch would load without a `limit`; it loads every tool that the query names. */
export function trySearch(catalog: Catalog, query: string, limit: number): TriedSearch {
  const startedAt = performance.now();
  const { hits } = searchCatalog(catalog, query, limit);
  const tookMs = performance.now() - startedAt;
  const named = hits.filter(({ pinned }) => pinned).length;
  const most = Math.min(Math.max(LIMITS.searchResults, named), LIMITS.searchResultsMost);
  return { hits, likely: likelyHits(hits.slice(0, most)).length, tookMs };
}
