/** Builds the index of the chosen ranker. Called by the cache worker; main must not import it. */

import type { SearchKind } from "../search.ts";
import { buildWeighted } from "../weighted/weighted.ts";
import { buildIndex, type SearchTool } from "./ranked.ts";

export type IndexedTool = SearchTool & { readonly fullName: string };

export function buildEngine(kind: SearchKind, tools: readonly IndexedTool[]): Uint8Array<ArrayBuffer> {
  if (kind === "ranked") return buildIndex(tools);
  return buildWeighted(tools.map(({ fullName, description = "" }) => ({ name: fullName, description })));
}
