/**
 * Owns which terms may stand for which: the synonym rules, cut to the words of a catalog, as the index stores them. A
 * word that only a rule knows ("remove" if every tool says "delete") becomes a term without tools. Called by ranked.ts.
 */

import type { Weights } from "../ranked/weights.ts";
import { synonymRules } from "../synonyms/synonyms.ts";
import { stem } from "../words/stem.ts";

export type Relation = { readonly term: string; readonly weight: number };

/** Term -> the terms of the catalog that may stand for it. `toolsWith`: number of tools with each term. */
export function relations(toolsWith: ReadonlyMap<string, number>, weights: Weights): Map<string, Relation[]> {
  const related = new Map<string, Map<string, number>>();
  for (const { from, to, kind } of synonymRules()) {
    const weight = weights.synonym[kind];
    const present = to.map(stem).filter((term) => toolsWith.has(term));
    for (const term of from.map(stem)) {
      const others = present.filter((other) => other !== term);
      if (others.length === 0) continue;
      const row = related.get(term) ?? new Map<string, number>();
      related.set(term, row);
      for (const other of others) row.set(other, Math.max(row.get(other) ?? 0, weight));
    }
  }
  return new Map(
    [...related].map(([term, row]) => [term, [...row].map(([other, weight]) => ({ term: other, weight }))]),
  );
}
