/**
 * The weighted ranker: an inverted index over name parts and description words, and its scoring.
 * `buildWeighted` runs in the cache worker; main only opens the bytes and scores. Pure.
 *
 * For each term of the query a tool gets
 *   10 if the term equals a part of its name, else 5 if the term is a substring of a part;
 *   4 more if the term is a word of its description;
 *   3 if neither holds but the term occurs in the full name (across parts, like `read_file`).
 */
import { decode, encode } from "../protocol/codec.ts";
import { nameParts, words } from "./weighted-tokens.ts";

export const WEIGHTED = { part: 10, partSubstring: 5, descriptionWord: 4, fullNameOnly: 3 } as const;

export interface IndexedTool {
  /** Full name in Pi, `<server>__<tool>`. */
  name: string;
  description: string;
}

/** Term -> tools, flat: the tools of term i are `tools[offsets[i] .. offsets[i + 1]]`. */
interface Postings {
  terms: string[];
  offsets: Uint32Array;
  tools: Uint32Array;
}

interface StoredPostings {
  terms: string[];
  /** Little-endian uint32s. */
  offsets: Uint8Array;
  tools: Uint8Array;
}

export interface WeightedIndex {
  names: string[];
  parts: Postings;
  words: Postings;
  wordIds: Map<string, number>;
}

export interface Hit {
  /** Position of the tool in the catalog that was indexed. */
  tool: number;
  score: number;
}

function collect(texts: readonly string[][]): StoredPostings {
  const byTerm = new Map<string, number[]>();
  texts.forEach((terms, tool) => {
    for (const term of new Set(terms)) {
      const tools = byTerm.get(term);
      if (tools) tools.push(tool);
      else byTerm.set(term, [tool]);
    }
  });
  const terms = [...byTerm.keys()].sort();
  const offsets = new Uint32Array(terms.length + 1);
  const tools: number[] = [];
  terms.forEach((term, i) => {
    for (const tool of byTerm.get(term) ?? []) tools.push(tool);
    offsets[i + 1] = tools.length;
  });
  return { terms, offsets: toBytes(offsets), tools: toBytes(Uint32Array.from(tools)) };
}

const toBytes = (array: Uint32Array): Uint8Array => {
  const bytes = new Uint8Array(array.length * 4);
  const view = new DataView(bytes.buffer);
  array.forEach((value, i) => {
    view.setUint32(i * 4, value, true);
  });
  return bytes;
};

const fromBytes = (bytes: Uint8Array): Uint32Array => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Uint32Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(i * 4, true));
};

const openPostings = (stored: StoredPostings): Postings => ({
  terms: stored.terms,
  offsets: fromBytes(stored.offsets),
  tools: fromBytes(stored.tools),
});

/** Index over the tools, by position, as bytes for the snapshot. */
export function buildWeighted(tools: readonly IndexedTool[]): Uint8Array<ArrayBuffer> {
  return encode({
    parts: collect(tools.map((tool) => nameParts(tool.name))),
    words: collect(tools.map((tool) => words(tool.description))),
  });
}

/** Opens what `buildWeighted` made over the same tools. */
export function openWeighted(bytes: Uint8Array, toolNames: readonly string[]): WeightedIndex {
  const stored = decode(bytes) as { parts: StoredPostings; words: StoredPostings };
  const index = { parts: openPostings(stored.parts), words: openPostings(stored.words) };
  return {
    ...index,
    names: toolNames.map((name) => name.toLowerCase()),
    wordIds: new Map(index.words.terms.map((term, id) => [term, id])),
  };
}

function forEachTool(postings: Postings, term: number, visit: (tool: number) => void): void {
  const end = postings.offsets[term + 1] ?? 0;
  for (let i = postings.offsets[term] ?? 0; i < end; i++) visit(postings.tools[i] ?? 0);
}

/** Adds one term's score to every tool that it matches. */
function scoreTerm(index: WeightedIndex, term: string, scores: Float64Array): boolean {
  const forTerm = new Map<number, number>();
  index.parts.terms.forEach((part, id) => {
    if (!part.includes(term)) return;
    const weight = part === term ? WEIGHTED.part : WEIGHTED.partSubstring;
    forEachTool(index.parts, id, (tool) => forTerm.set(tool, Math.max(weight, forTerm.get(tool) ?? 0)));
  });
  const word = index.wordIds.get(term);
  if (word !== undefined) {
    forEachTool(index.words, word, (tool) =>
      forTerm.set(tool, (forTerm.get(tool) ?? 0) + WEIGHTED.descriptionWord),
    );
  }
  index.names.forEach((name, tool) => {
    if (!forTerm.has(tool) && name.includes(term)) forTerm.set(tool, WEIGHTED.fullNameOnly);
  });
  for (const [tool, score] of forTerm) scores[tool] = (scores[tool] ?? 0) + score;
  return forTerm.size > 0;
}

/** The best tools for the terms, best first; equal scores in the order of their names. */
export function searchWeighted(
  index: WeightedIndex,
  terms: readonly string[],
  limit: number,
  accepts: (tool: number) => boolean = () => true,
): { hits: Hit[]; unmatched: string[] } {
  const scores = new Float64Array(index.names.length);
  const unmatched = terms.filter((term) => !scoreTerm(index, term, scores));
  const hits: Hit[] = [];
  scores.forEach((score, tool) => {
    if (score > 0 && accepts(tool)) hits.push({ tool, score });
  });
  const nameOf = (hit: Hit): string => index.names[hit.tool] ?? "";
  hits.sort((a, b) => b.score - a.score || (nameOf(a) < nameOf(b) ? -1 : 1));
  return { hits: hits.slice(0, limit), unmatched };
}
