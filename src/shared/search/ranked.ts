/**
 * Searches an opened index: adds up impacts, weighs coverage, keeps the best tools. Owns the score of a tool. Runs on the
 * main thread and must not decode anything up front. Its scratch arrays are allocated once for each index, and every
 * query leaves them zeroed. Called by search.ts. To add a signal: a number in weights.ts, its part in `bestTools`, and a
 * row in shared/search/README.md.
 */
import { IMPACT_BITS, stringAt, type ToolIndex, WEIGHT_BITS } from "./index-format.ts";
import { findPins, type ToolFilter } from "./pins.ts";
import { type QueryTerm, queryTerms } from "./query.ts";
import { WEIGHTS, type Weights } from "./weights.ts";

type SearchHit = { readonly tool: number; readonly score: number; readonly pinned: boolean };
type SearchResult = {
  /** Best first. Tools that the query names come before and are never cut, so there can be more than `limit`. */
  readonly hits: readonly SearchHit[];
  /** Words of the query, in lower case, that no tool has in any form, without quoted values and numbers. */
  readonly unmatched: readonly string[];
};
export type SearchOptions = {
  /** Restricts the search to the servers that it accepts. Called once for each server. */
  readonly servers?: (server: string) => boolean;
  /** Restricts the search to the tools that it accepts. */
  readonly tools?: ToolFilter;
  readonly weights?: Weights;
};

const impactMask = 2 ** IMPACT_BITS - 1;
const weightMask = 2 ** WEIGHT_BITS - 1;

/**
 * Four numbers for each tool side by side, since a posting needs them all and a large catalog does not fit into the
 * processor's cache: score, covered, the best impact of the current query word, the number of that word from 1.
 */
const SCORE = 0;
const COVERED = 1;
const BEST = 2;
const BEST_OF = 3;
const NUMBERS = 4;

/** All zero between queries. */
type Scratch = {
  readonly numbers: Float32Array;
  readonly touched: Uint32Array;
  count: number;
  /** Share of an exact match that the query gives each term. */
  readonly match: Float32Array;
};
const scratches = new WeakMap<ToolIndex, Scratch>();

export function searchIndex(
  index: ToolIndex,
  query: string,
  limit: number,
  options: SearchOptions = {},
): SearchResult {
  const weights = options.weights ?? WEIGHTS;
  const accepts = bothFilters(serverFilter(index, options.servers), options.tools);
  const { terms, unmatched, action } = queryTerms(index, query, weights);
  const named = findPins(index, query);
  const pins = accepts === undefined ? named : named.filter(accepts);
  const ranked = bestTools({ index, terms, action, weights, accepts, capacity: limit + pins.length });
  const top = ranked[0]?.score ?? 1;
  const hits: SearchHit[] = pins.map((tool) => ({ tool, score: top, pinned: true }));
  for (const { tool, score } of ranked) {
    if (hits.length >= limit) break;
    if (!pins.includes(tool)) hits.push({ tool, score, pinned: false });
  }
  return { hits, unmatched };
}

export const bothFilters = (
  one: ToolFilter | undefined,
  other: ToolFilter | undefined,
): ToolFilter | undefined => (one && other ? (tool) => one(tool) && other(tool) : (one ?? other));

type BestInput = {
  index: ToolIndex;
  action: number;
  terms: readonly QueryTerm[];
  weights: Weights;
  accepts: ToolFilter | undefined;
  capacity: number;
};

function bestTools({ index, terms, action, weights, accepts, capacity }: BestInput): Scored[] {
  const scratch = scratchOf(index);
  const { numbers, touched, match } = scratch;
  let wanted = 0;
  for (let at = 0; at < terms.length; at++) {
    const term = terms[at]!;
    wanted += term.idf * term.weight;
    for (const variant of term.variants) {
      const share = variant.weight * term.weight;
      const from = index.postingStart[variant.term]!;
      const to = index.postingStart[variant.term + 1]!;
      addPostings(index.postings, scratch, {
        from,
        to,
        scale: share * index.impactScale,
        cover: share * term.idf,
        order: at + 1,
      });
    }
    for (const variant of term.variants) match[variant.term] = Math.max(match[variant.term]!, variant.weight);
  }
  const top = new TopTools(capacity);
  const { coverageBase, nameCoverage } = weights;
  // More than anything but its words can make of a score, and a little for the rounding of 32-bit sums.
  const most = (1 + weights.actionFit) * (1 + nameCoverage) * 1.001;
  for (let at = 0; at < scratch.count; at++) {
    const tool = touched[at]!;
    const first = tool * NUMBERS;
    if (numbers[first + SCORE]! * most <= top.least) {
      numbers[first + SCORE] = numbers[first + COVERED] = numbers[first + BEST_OF] = 0;
      continue;
    }
    const own = index.toolAction[tool]!;
    const fit =
      action === 0 || own === 0 ? 1 : (own & action) !== 0 ? 1 + weights.actionFit : 1 - weights.actionClash;
    const covered = numbers[first + COVERED]! / wanted;
    const total = fit * numbers[first + SCORE]! * (coverageBase + (1 - coverageBase) * covered);
    // The bonus for the name needs another walk, so it is computed only if it could lift the tool into the best.
    if (total * (1 + nameCoverage) > top.least && (accepts === undefined || accepts(tool))) {
      top.add(tool, total * (1 + nameCoverage * nameMatch(index, match, tool)));
    }
    numbers[first + SCORE] = numbers[first + COVERED] = numbers[first + BEST_OF] = 0;
  }
  scratch.count = 0;
  for (const term of terms) for (const variant of term.variants) match[variant.term] = 0;
  return top.sorted();
}

type Span = {
  readonly from: number;
  readonly to: number;
  readonly scale: number;
  readonly cover: number;
  readonly order: number;
};

/**
 * Adds a query word to the scores. The word counts once for each tool, by its best variant. The closest variants come
 * first, so the first variant that reaches a tool decides how far the word covers it. This function is small and separate
 * so that the engine compiles it during the first query.
 */
function addPostings(postings: Uint32Array, scratch: Scratch, { from, to, scale, cover, order }: Span): void {
  const { numbers } = scratch;
  for (let at = from; at < to; at++) {
    const packed = postings[at]!;
    const tool = packed >>> IMPACT_BITS;
    const impact = (packed & impactMask) * scale;
    const first = tool * NUMBERS;
    const seen = numbers[first + BEST_OF]!;
    if (seen === 0) {
      scratch.touched[scratch.count++] = tool;
      numbers[first + BEST_OF] = order;
      numbers[first + BEST] = numbers[first + SCORE] = impact;
      numbers[first + COVERED] = cover;
    } else if (seen !== order) {
      numbers[first + BEST_OF] = order;
      numbers[first + BEST] = impact;
      numbers[first + SCORE] = numbers[first + SCORE]! + impact;
      numbers[first + COVERED] = numbers[first + COVERED]! + cover;
    } else if (impact > numbers[first + BEST]!) {
      numbers[first + SCORE] = numbers[first + SCORE]! + impact - numbers[first + BEST]!;
      numbers[first + BEST] = impact;
    }
  }
}

/** Share of the tool's name, weighted by IDF, that the query has. */
function nameMatch({ nameStart, nameTerms }: ToolIndex, match: Float32Array, tool: number): number {
  let sum = 0;
  for (let at = nameStart[tool]!; at < nameStart[tool + 1]!; at++) {
    const packed = nameTerms[at]!;
    sum += match[packed >>> WEIGHT_BITS]! * (packed & weightMask);
  }
  return Math.min(1, sum / weightMask);
}

export function serverFilter(index: ToolIndex, servers: SearchOptions["servers"]): ToolFilter | undefined {
  if (servers === undefined) return undefined;
  const { serverStart, serverChars } = index;
  const accepted = Array.from({ length: serverStart.length - 1 }, (_, server) =>
    servers(stringAt(serverStart, serverChars, server)),
  );
  return (tool) => accepted[index.toolServer[tool]!] === true;
}

function scratchOf(index: ToolIndex): Scratch {
  let scratch = scratches.get(index);
  if (scratch === undefined) {
    const { toolCount, termCount } = index;
    scratch = {
      numbers: new Float32Array(toolCount * NUMBERS),
      touched: new Uint32Array(toolCount),
      count: 0,
      match: new Float32Array(termCount),
    };
    scratches.set(index, scratch);
  }
  return scratch;
}

/** Keeps the best tools of a query. Called by ranked.ts. */
export type Scored = { readonly tool: number; readonly score: number };

/** The `capacity` best of the added tools, as a heap with the worst of them on top. */
class TopTools {
  /** A tool is kept only with a higher score than this; -1 while there is room. */
  least = -1;
  readonly #capacity: number;
  readonly #heap: Scored[] = [];

  constructor(capacity: number) {
    this.#capacity = Math.max(0, capacity);
    if (this.#capacity === 0) this.least = Infinity;
  }

  add(tool: number, score: number): void {
    if (score <= this.least) return;
    const hit = { tool, score };
    if (this.#heap.length < this.#capacity) this.#rise(hit);
    else this.#sink(hit);
    if (this.#heap.length === this.#capacity) this.least = this.#heap[0]!.score;
  }

  /** Best first. Of equal scores the earlier tool comes first, so that one catalog always gives one order. */
  sorted(): Scored[] {
    return this.#heap.sort((a, b) => b.score - a.score || a.tool - b.tool);
  }

  #rise(hit: Scored): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(hit);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.score <= hit.score) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = hit;
  }

  #sink(hit: Scored): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && heap[child + 1]!.score < heap[child]!.score) child++;
      if (heap[child]!.score >= hit.score) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = hit;
  }
}
