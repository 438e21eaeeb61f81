/**
 * Builds the search index of the chosen ranker. Owns the choice of the builder. Must not be imported by main: building
 * takes 0.1 s and more. Called by the cache worker (workers/cache/snapshot/make.ts).
 */

import type { SearchKind } from "../search.ts";
import { buildWeighted } from "../weighted/weighted.ts";
import { buildIndex, type SearchTool } from "./ranked.ts";

export type IndexedTool = SearchTool & { readonly fullName: string };

/** The bytes of the index over the tools, by position. */
export function buildEngine(kind: SearchKind, tools: readonly IndexedTool[]): Uint8Array<ArrayBuffer> {
  if (kind === "ranked") return buildIndex(tools);
  return buildWeighted(tools.map(({ fullName, description = "" }) => ({ name: fullName, description })));
}
