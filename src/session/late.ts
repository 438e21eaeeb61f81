/** What a session needs late: a search that the person tries, as ToolSearch would rank it, and cleaning what a script printed. */
import type { Catalog } from "../catalog/catalog.ts";
import { likelyHits, searchCatalog } from "../catalog/search.ts";
import type { ResultContent } from "../shared/protocol/calls.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import { cleanBlocks, textBlock } from "../shared/text/clean-blocks.ts";
import type { TriedSearch } from "../ui/mcp-host.ts";

/** `likely`: as many as ToolSearch would load without a `limit`; it loads every tool that the query names. */
export function trySearch(catalog: Catalog, query: string, limit: number): TriedSearch {
  const startedAt = performance.now();
  const { hits } = searchCatalog(catalog, query, limit);
  const tookMs = performance.now() - startedAt;
  const named = hits.filter(({ pinned }) => pinned).length;
  const most = Math.min(Math.max(LIMITS.searchResults, named), LIMITS.searchResultsMost);
  return { hits, likely: likelyHits(hits.slice(0, most)).length, tookMs };
}

/** The content of a script's result, with a line on what was taken out; undefined if it was clean. */
export function cleanPrinted(content: readonly ResultContent[]): ResultContent[] | undefined {
  const { blocks, taken } = cleanBlocks(content);
  return taken === "" ? undefined : [...blocks, textBlock(`[${taken} left out of what the script printed.]`)];
}
