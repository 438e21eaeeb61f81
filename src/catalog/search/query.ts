/**
 * Searches a catalog through the index of its snapshot, which is opened when first used. Apart from the catalog
 * itself, since the ranker's code is loaded after Pi's first paint.
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

/** Below this share of the best score a tool is not worth its place: that costs 0.4 points and saves one in four. */
const LIKELY = 0.5;

/** The hits that are about as good as the best one. `hits`: best first. */
export const likelyHits = (hits: readonly CatalogHit[]): CatalogHit[] =>
  hits.filter(({ score }) => score >= (hits[0]?.score ?? 0) * LIKELY);

/** One a snapshot, whatever was taken out of its catalog since. */
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

/** Undefined where nothing was taken out since the index was made. */
const presence = (catalog: Catalog): ((at: number) => boolean) | undefined => {
  const { count, tool } = catalog.indexed;
  return count === catalog.count ? undefined : (at) => isThere(catalog, tool(at));
};

/** Best first. `server`: only its tools. Tools that the query names come first and may exceed the limit. */
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

/** Whether a tool has that name, however it is written. `server`: a tool of this server. */
export function hasTool(catalog: Catalog, name: string, server?: string): boolean {
  const exact = catalog.get(name);
  if (exact) return server === undefined || exact.server.name === server;
  if (catalog.count === 0) return false;
  return engineOf(catalog).named(name, { server, accepts: presence(catalog) }).length > 0;
}

/**
 * Tools of that name, however it is written: local, with the server, with `mcp__`, with hyphens. Of very many of
 * one name the first ones, with those whose own name it is to the letter. `server`: only its tools.
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
