/**
 * Builds the search index of a catalog: BM25F impacts are computed once, so that a query only adds them up. Runs in a
 * worker, never on the main thread (0.1 s and more for 2,000 tools). Called by build.ts.
 */
import { actions } from "../ranked/actions.ts";
import type { SearchTool } from "../ranked/fields.ts";
import { IMPACT_BITS, MAX_TOOLS, WEIGHT_BITS, writeIndex } from "../ranked/index-format.ts";
import { fillSlots } from "../ranked/lookup.ts";
import { longestName, pinEntries } from "../ranked/pins.ts";
import { WEIGHTS, type Weights } from "../ranked/weights.ts";
import { tokenize } from "../words/tokens.ts";
import { relations } from "./relations.ts";
import { FIELDS, NAME, type Scanned, scan } from "./scan.ts";

export type { SearchTool } from "../ranked/fields.ts";

/** Fields whose words count for the IDF. The other fields would make words of parameters look common. */
const idfFields = [NAME, FIELDS.indexOf("description")] as const;

/** Longer names lose (`Weights.longName`). */
const longNameWords = 3;

export function buildIndex(
  tools: readonly SearchTool[],
  weights: Weights = WEIGHTS,
): Uint8Array<ArrayBuffer> {
  if (tools.length > MAX_TOOLS)
    throw new RangeError(`search index: ${tools.length} tools, at most ${MAX_TOOLS}`);
  const servers = [...new Set(tools.map((tool) => tool.server))];
  const serverIds = new Map(servers.map((server, id) => [server, id]));
  const toolServer = Uint32Array.from(tools, (tool) => serverIds.get(tool.server)!);
  const scanned = scan(tools);
  const related = relations(documentFrequencies(scanned), weights);
  const vocabulary = [...new Set([...scanned.terms, ...related.keys()])].sort();
  const ids = new Map(vocabulary.map((term, id) => [term, id]));
  const idOf = Uint32Array.from(scanned.terms, (term) => ids.get(term)!);
  const termCount = vocabulary.length;
  const idf = termIdf({ scanned, idOf, termCount, weights });
  const postings = packPostings({ scanned, idOf, termCount, idf, weights });
  const variants = packLists(
    vocabulary.map((term) =>
      (related.get(term) ?? []).map(({ term: other, weight }) => ({ id: ids.get(other)!, weight })),
    ),
  );
  const names = packLists(scanned.nameTerms.map((terms) => nameShares(terms, idOf, idf)));
  const text = packStrings(vocabulary);
  const serverText = packStrings(servers);
  return writeIndex({
    toolCount: tools.length,
    termCount,
    nameWords: longestName(tools),
    impactScale: postings.scale,
    termStart: text.start,
    termChars: text.chars,
    termSlots: fillSlots(vocabulary),
    termIdf: idf,
    postingStart: postings.start,
    postings: postings.items,
    variantStart: variants.start,
    variants: variants.items,
    nameStart: names.start,
    nameTerms: names.items,
    toolServer,
    toolAction: Uint16Array.from(tools, (tool, id) =>
      toolAction(
        tool,
        scanned.nameTerms[id]!.map((term) => scanned.terms[term]!),
      ),
    ),
    serverStart: serverText.start,
    serverChars: serverText.chars,
    pins: pinEntries(tools),
  });
}

/** Term -> number of tools that have it. */
function documentFrequencies({ terms, term }: Scanned): Map<string, number> {
  const found = new Uint32Array(terms.length);
  for (let entry = 0; entry < term.length; entry++) found[term[entry]!]! += 1;
  return new Map(terms.map((text, at) => [text, found[at]!]));
}

type IdfInput = {
  scanned: Scanned;
  /** Scanned term -> its id in the vocabulary. */
  idOf: Uint32Array;
  /** Number of terms in the vocabulary. */
  termCount: number;
  weights: Weights;
};

/** BM25 IDF. */
function termIdf({ scanned, idOf, termCount, weights }: IdfInput): Float32Array<ArrayBuffer> {
  const toolsWith = new Float64Array(termCount);
  for (let entry = 0; entry < scanned.term.length; entry++) {
    if (!idfFields.some((field) => scanned.counts[entry * FIELDS.length + field]! > 0)) continue;
    toolsWith[idOf[scanned.term[entry]!]!]! += 1;
  }
  const toolCount = scanned.start.length - 1;
  return Float32Array.from(toolsWith, (df) => {
    const bounded = Math.min(toolCount, Math.max(df, weights.minDf));
    return Math.log(1 + (toolCount - bounded + 0.5) / (bounded + 0.5));
  });
}

type PostingInput = IdfInput & { idf: Float32Array };
type Packed = { start: Uint32Array<ArrayBuffer>; items: Uint32Array<ArrayBuffer>; scale: number };

function packPostings({ scanned, idOf, termCount, idf, weights }: PostingInput): Packed {
  const averages = scanned.lengths.map(
    (lengths) => lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, lengths.length) || 1,
  );
  const { term, counts } = scanned;
  const most = term.length;
  const found = { id: new Uint32Array(most), tool: new Uint32Array(most), impact: new Float64Array(most) };
  const start = new Uint32Array(termCount + 1);
  let largest = 1e-9;
  let count = 0;
  for (let tool = 0; tool + 1 < scanned.start.length; tool++) {
    const share = 1 / (1 + weights.longName * Math.max(0, scanned.nameTerms[tool]!.length - longNameWords));
    const norms = FIELDS.map((field, at) => {
      const b = weights.lengthNorm[field];
      return weights.field[field] / (1 - b + (b * scanned.lengths[at]![tool]!) / averages[at]!);
    });
    for (let entry = scanned.start[tool]!; entry < scanned.start[tool + 1]!; entry++) {
      const id = idOf[term[entry]!]!;
      let frequency = 0;
      for (let at = 0; at < FIELDS.length; at++)
        frequency += counts[entry * FIELDS.length + at]! * norms[at]!;
      const impact = (share * idf[id]! * frequency * (1 + weights.k1)) / (weights.k1 + frequency);
      if (!(impact > 0)) continue;
      largest = Math.max(largest, impact);
      found.id[count] = id;
      found.tool[count] = tool;
      found.impact[count++] = impact;
      start[id + 1]! += 1;
    }
  }
  for (let id = 0; id < termCount; id++) start[id + 1]! += start[id]!;
  const levels = 2 ** IMPACT_BITS - 1;
  const items = new Uint32Array(count);
  const next = start.slice();
  for (let at = 0; at < count; at++) {
    const level = Math.max(1, Math.round((found.impact[at]! / largest) * levels));
    const slot = next[found.id[at]!]!++;
    items[slot] = ((found.tool[at]! << IMPACT_BITS) | level) >>> 0;
  }
  return { start, items, scale: largest / levels };
}

type Weighted = { readonly id: number; readonly weight: number };

function nameShares(terms: readonly number[], idOf: Uint32Array, idf: Float32Array): Weighted[] {
  const list = terms.map((term) => idOf[term]!);
  const total = list.reduce((sum, id) => sum + idf[id]!, 0) || 1;
  return list.map((id) => ({ id, weight: idf[id]! / total }));
}

function packLists(lists: readonly (readonly Weighted[])[]): {
  start: Uint32Array<ArrayBuffer>;
  items: Uint32Array<ArrayBuffer>;
} {
  const start = new Uint32Array(lists.length + 1);
  const items = new Uint32Array(lists.reduce((sum, list) => sum + list.length, 0));
  const most = 2 ** WEIGHT_BITS - 1;
  let at = 0;
  lists.forEach((list, entry) => {
    for (const { id, weight } of list)
      items[at++] = ((id << WEIGHT_BITS) | Math.round(Math.min(1, weight) * most)) >>> 0;
    start[entry + 1] = at;
  });
  return { start, items };
}

function packStrings(strings: readonly string[]): {
  start: Uint32Array<ArrayBuffer>;
  chars: Uint16Array<ArrayBuffer>;
} {
  const start = new Uint32Array(strings.length + 1);
  strings.forEach((string, entry) => {
    start[entry + 1] = start[entry]! + string.length;
  });
  const chars = new Uint16Array(start[strings.length]!);
  strings.forEach((string, entry) => {
    for (let at = 0; at < string.length; at++) chars[start[entry]! + at] = string.charCodeAt(at);
  });
  return { start, chars };
}

/** The action that the name says, or else the start of the description ("Deletes ..."). */
function toolAction({ description }: SearchTool, nameTerms: readonly string[]): number {
  const named = actions(nameTerms);
  if (named !== 0 || typeof description !== "string") return named;
  return actions(
    tokenize(description.slice(0, 100), 3)
      .slice(0, 3)
      .map(({ term }) => term),
  );
}
