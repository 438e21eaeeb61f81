/**
 * The weighted ranker: an inverted index over parts of names and words of descriptions, and its scoring. Owns its bytes
 * and the weights 10/5/4/3, which must not change. `buildWeighted` runs in the cache worker (build.ts);
 * main only opens the bytes and scores (called by search.ts). Pure.
 *
 * For each term of the query a tool gets
 *   10 if the term equals a part of its name, else 5 if the term is a substring of a part;
 *   4 more if the term is a word of its description;
 *   3 if neither holds but the term occurs in the full name (across parts, like `read_file`).
 */
import { decode, encode } from "../protocol/calls.ts";

export const WEIGHTED = { part: 10, partSubstring: 5, descriptionWord: 4, fullNameOnly: 3 } as const;

export interface WeightedTool {
  /** Full name in Pi, `<server>__<tool>`. */
  name: string;
  description: string;
  /** They count as parts of the name. */
  keywords?: string;
}

/** Term -> tools. The tools of term i are `tools[offsets[i] .. offsets[i + 1]]`. Terms are sorted. */
interface Postings {
  terms: readonly string[];
  offsets: Uint32Array;
  tools: Uint32Array;
}

interface StoredPostings {
  /** Separated by spaces, which no term has. */
  terms: string;
  /** Little-endian uint32s. */
  offsets: Uint8Array;
  tools: Uint8Array;
}

interface WeightedIndex {
  names: string[];
  parts: Postings;
  words: Postings;
}

interface Hit {
  /** Position of the tool in the catalog that was indexed. */
  tool: number;
  score: number;
}

/** Characters of a description that are read, as many as the other ranker reads. */
const DESCRIPTION_CHARS = 4_000;
/** Different terms of one kind: five times as many as 10,000 real tools have. Main looks at all parts for each word. */
const TERMS = 50_000;
/** Words of a query that count, in a catalog of the usual size and in the largest. */
const QUERY_TERMS = 64;
const QUERY_TERMS_LEAST = 8;
/** Comparisons of texts in one query: 10 ms. */
const COMPARISONS = 400_000;

function collect(texts: readonly string[][]): StoredPostings {
  const byTerm = new Map<string, number[]>();
  texts.forEach((terms, tool) => {
    for (const term of new Set(terms)) {
      const tools = byTerm.get(term);
      if (tools) tools.push(tool);
      else if (byTerm.size < TERMS) byTerm.set(term, [tool]);
    }
  });
  const terms = [...byTerm.keys()].sort();
  const offsets = new Uint32Array(terms.length + 1);
  const tools: number[] = [];
  terms.forEach((term, i) => {
    for (const tool of byTerm.get(term) ?? []) tools.push(tool);
    offsets[i + 1] = tools.length;
  });
  return { terms: terms.join(" "), offsets: toBytes(offsets), tools: toBytes(Uint32Array.from(tools)) };
}

const toBytes = (array: Uint32Array): Uint8Array => new Uint8Array(array.buffer);

/** Copies the bytes, since they may start at any byte. */
const fromBytes = (bytes: Uint8Array): Uint32Array => new Uint32Array(new Uint8Array(bytes).buffer);

const openPostings = (stored: StoredPostings): Postings => ({
  terms: stored.terms === "" ? [] : stored.terms.split(" "),
  offsets: fromBytes(stored.offsets),
  tools: fromBytes(stored.tools),
});

/** The index over the tools, by position, as bytes for the snapshot. */
export function buildWeighted(tools: readonly WeightedTool[]): Uint8Array<ArrayBuffer> {
  return encode({
    parts: collect(tools.map(({ name, keywords = "" }) => [...nameParts(name), ...words(keywords)])),
    words: collect(tools.map((tool) => words(tool.description.slice(0, DESCRIPTION_CHARS)))),
  });
}

/** Opens the bytes that `buildWeighted` made for the same tools. */
export function openWeighted(bytes: Uint8Array, toolNames: readonly string[]): WeightedIndex {
  const stored = decode(bytes) as { parts: StoredPostings; words: StoredPostings };
  return {
    parts: openPostings(stored.parts),
    words: openPostings(stored.words),
    names: toolNames.map((name) => name.toLowerCase()),
  };
}

/** Position of the term, or -1. */
function findTerm({ terms }: Postings, term: string): number {
  let [low, high] = [0, terms.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (terms[middle]! < term) low = middle + 1;
    else high = middle;
  }
  return terms[low] === term ? low : -1;
}

/** Writes into `earned`, which is all zero before, what one term earns each tool. Answers whether any tool has the term. */
function scoreTerm({ parts, words, names }: WeightedIndex, term: string, earned: Uint8Array): boolean {
  let isMatched = false;
  const addTo = (postings: Postings, id: number, add: (tool: number) => void): void => {
    isMatched = true;
    for (let i = postings.offsets[id]!; i < postings.offsets[id + 1]!; i++) add(postings.tools[i]!);
  };
  for (let id = 0; id < parts.terms.length; id++) {
    const part = parts.terms[id]!;
    if (!part.includes(term)) continue;
    const weight = part === term ? WEIGHTED.part : WEIGHTED.partSubstring;
    addTo(parts, id, (tool) => {
      earned[tool] = Math.max(weight, earned[tool]!);
    });
  }
  const word = findTerm(words, term);
  if (word >= 0) {
    addTo(words, word, (tool) => {
      earned[tool] = earned[tool]! + WEIGHTED.descriptionWord;
    });
  }
  for (let tool = 0; tool < names.length; tool++) {
    if (earned[tool] !== 0 || !names[tool]!.includes(term)) continue;
    earned[tool] = WEIGHTED.fullNameOnly;
    isMatched = true;
  }
  return isMatched;
}

/** The best tools for the terms, best first. Tools with equal scores come in the order of their names. */
export function searchWeighted(
  index: WeightedIndex,
  terms: readonly string[],
  limit: number,
  accepts: (tool: number) => boolean = () => true,
): { hits: Hit[]; unmatched: string[] } {
  const { names, parts } = index;
  const fitting = Math.floor(COMPARISONS / (names.length + parts.terms.length + 1));
  const counted = terms.slice(0, Math.min(QUERY_TERMS, Math.max(QUERY_TERMS_LEAST, fitting)));
  const scores = new Uint32Array(names.length);
  const earned = new Uint8Array(names.length);
  const unmatched = counted.filter((term) => {
    earned.fill(0);
    const isMatched = scoreTerm(index, term, earned);
    for (let tool = 0; tool < scores.length; tool++) scores[tool]! += earned[tool]!;
    return !isMatched;
  });
  const isBefore = (a: Hit, b: Hit): boolean =>
    a.score !== b.score ? a.score > b.score : names[a.tool]! < names[b.tool]!;
  const hits: Hit[] = [];
  scores.forEach((score, tool) => {
    const hit = { tool, score };
    const last = hits.length === limit ? hits.at(-1) : undefined;
    if (score === 0 || limit < 1 || (last && !isBefore(hit, last)) || !accepts(tool)) return;
    if (last) hits.pop();
    let at = hits.length;
    while (at > 0 && isBefore(hit, hits[at - 1]!)) at--;
    hits.splice(at, 0, hit);
  });
  return { hits, unmatched };
}

/** Parts of a name in lower case, cut at `_ - . / :`, at spaces, and between the words of camelCase. */
export function nameParts(name: string): string[] {
  const spaced = name
    .normalize("NFKC")
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2");
  return spaced
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part.length > 0);
}

/** Words of a text in lower case: runs of letters and digits. */
export function words(text: string): string[] {
  return (
    text
      .normalize("NFKC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}

/** Terms of a query, cut only at white space, commas and semicolons, so that `read_file` stays one term. */
export function weightedTerms(query: string): string[] {
  const terms = query
    .normalize("NFKC")
    .toLowerCase()
    .split(/[\s,;]+/u)
    .map((term) => term.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ""))
    .filter((term) => term.length > 0);
  return [...new Set(terms)];
}
