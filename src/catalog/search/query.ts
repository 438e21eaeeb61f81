/**
 * Searches a catalog through the index of its snapshot. The index is opened at the first search. This file is apart from
 * the catalog, because the code of the ranker is loaded after Pi's first paint.
 */

import { MAX_PINS } from "../../shared/search/ranked/pins.ts";
import { openEngine, type SearchEngine } from "../../shared/search/search.ts";
import { type Catalog, type CatalogTool, eachTool } from "../catalog.ts";

export interface CatalogHit {
  tool: CatalogTool;
  /** Comparable within one result only. */
  score: number;
  /** The query names this tool. */
  pinned: boolean;
}

/**
 * Hits below this share of the best score are not loaded: that costs 0.4 points in the search benchmark and saves one
 * loaded tool in four.
 */
const LIKELY = 0.5;

/** The hits that are nearly as good as the best one. `hits`: best first. */
export const likelyHits = (hits: readonly CatalogHit[]): CatalogHit[] =>
  hits.filter(({ score }) => score >= (hits[0]?.score ?? 0) * LIKELY);

/** One engine per snapshot; `catalogWithout` does not change the snapshot. */
const engines = new WeakMap<Catalog["indexed"], SearchEngine>();

function engineOf({ indexed, settings }: Catalog): SearchEngine {
  let engine = engines.get(indexed);
  if (!engine) {
    engine = openEngine(settings.search, indexed.index, () => [...eachTool(indexed)]);
    engines.set(indexed, engine);
  }
  return engine;
}

const isThere = (catalog: Catalog, tool: CatalogTool): boolean => catalog.get(tool.name) === tool;

/** Undefined if the catalog still holds every tool of the index. */
const presence = (catalog: Catalog): ((at: number) => boolean) | undefined => {
  const { count, tool } = catalog.indexed;
  return count === catalog.count ? undefined : (at) => isThere(catalog, tool(at));
};

/** Best first. `server` restricts the search to its tools. Tools that the query names come first, beyond the limit too. */
export function searchCatalog(
  catalog: Catalog,
  query: string,
  limit: number,
  server?: string,
): { hits: CatalogHit[]; unmatched: readonly string[] } {
  if (catalog.count === 0) return { hits: [], unmatched: [] };
  const options = { server, accepts: presence(catalog) };
  const { hits, unmatched } = engineOf(catalog).search(query, limit, options);
  return {
    hits: hits.map((hit) => ({ ...hit, tool: catalog.indexed.tool(hit.tool) })),
    unmatched,
  };
}

/** Whether a tool has this name in some spelling. `server` restricts the search to its tools. */
export function hasTool(catalog: Catalog, name: string, server?: string): boolean {
  const exact = catalog.get(name);
  if (exact) return server === undefined || exact.server.name === server;
  if (catalog.count === 0) return false;
  return engineOf(catalog).named(name, { server, accepts: presence(catalog) }).length > 0;
}

/**
 * The tools of this name in any spelling: without the server, with it, with `mcp__`, with hyphens. If very many tools
 * share the name, the first ones and those with exactly this name. `server` restricts the search to its tools.
 */
export function toolsNamed(catalog: Catalog, name: string, server?: string): CatalogTool[] {
  const isOf = (tool: CatalogTool): boolean => server === undefined || tool.server.name === server;
  const exact = catalog.get(name);
  if (exact) return isOf(exact) ? [exact] : [];
  if (catalog.count === 0) return [];
  const { tool } = catalog.indexed;
  const isPresent = presence(catalog);
  const named = (accepts: ((at: number) => boolean) | undefined): CatalogTool[] =>
    engineOf(catalog).named(name, { server, accepts }).map(tool);
  const found = named(isPresent);
  if (found.length < MAX_PINS) return found;
  const toTheLetter = named((at) => tool(at).tool === name && (isPresent?.(at) ?? true));
  return [...new Set([...toTheLetter, ...found])];
}
