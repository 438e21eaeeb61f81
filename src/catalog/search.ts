/**
 * Searches a catalog through the index of its snapshot, which is opened when first used. Apart from the catalog
 * itself, since the ranker's code is loaded after Pi's first paint.
 */
import { openEngine, type SearchEngine } from "../search/engine.ts";
import type { Catalog, CatalogTool } from "./catalog.ts";

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
    engine = openEngine(settings.search, indexed.index, indexed.tools);
    engines.set(indexed, engine);
  }
  return engine;
}

const isThere = (catalog: Catalog, tool: CatalogTool): boolean => catalog.get(tool.name) === tool;

/** Best first. `server`: only its tools. Tools that the query names come first and may exceed the limit. */
export function searchCatalog(
  catalog: Catalog,
  query: string,
  limit: number,
  server?: string,
): { hits: CatalogHit[]; unmatched: readonly string[] } {
  const { tools } = catalog.indexed;
  if (catalog.tools.length === 0) return { hits: [], unmatched: [] };
  // Those that were taken out may have the first places.
  const most = limit + tools.length - catalog.tools.length;
  const { hits, unmatched } = engineOf(catalog).search(query, most, server);
  const found = hits
    .map((hit) => ({ ...hit, tool: tools[hit.tool] as CatalogTool }))
    .filter(({ tool }) => isThere(catalog, tool));
  return { hits: found.filter(({ pinned }, place) => pinned || place < limit), unmatched };
}

/** Tools of that name, however it is written: local, with the server, with `mcp__`, with hyphens. */
export function toolsNamed(catalog: Catalog, name: string): CatalogTool[] {
  const exact = catalog.get(name);
  if (exact) return [exact];
  if (catalog.tools.length === 0) return [];
  return engineOf(catalog)
    .named(name)
    .map((at) => catalog.indexed.tools[at] as CatalogTool)
    .filter((tool) => isThere(catalog, tool));
}
