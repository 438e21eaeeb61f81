/**
 * Owns searching an opened index: adds up impacts, weighs coverage, keeps the best. Runs on the main thread.
 * It decodes nothing up front; its scratch arrays are allocated once per index and left zeroed by every query.
 */
import { IMPACT_BITS, stringAt, type ToolIndex, WEIGHT_BITS } from "./index-format.ts";
import { findPins, type ToolFilter } from "./pins.ts";
import { type QueryTerm, queryTerms } from "./query.ts";
import { type Scored, spreadOverServers, TopTools } from "./top.ts";
import { WEIGHTS, type Weights } from "./weights.ts";

export type SearchHit = { readonly tool: number; readonly score: number; readonly pinned: boolean };
export type SearchResult = {
  /** Best first. Tools that the query names come first and are never cut, so there can be more than `limit`. */
  readonly hits: readonly SearchHit[];
  /** Words of the query, lower case, that no tool has in any form; neither quoted values nor numbers. */
  readonly unmatched: readonly string[];
};
export type SearchOptions = {
  /** Only tools of servers this accepts. Called once per server. */
  readonly servers?: (server: string) => boolean;
  /** Only tools this accepts. */
  readonly tools?: ToolFilter;
  readonly weights?: Weights;
};

/** Candidates kept beyond the hits wanted, so that spreading over servers has something to choose from. */
const spareCandidates = 15;
const impactMask = 2 ** IMPACT_BITS - 1;
const weightMask = 2 ** WEIGHT_BITS - 1;

/** Per tool, except `match`: per term. All zero between queries. */
type Scratch = {
  readonly score: Float32Array;
  readonly covered: Float32Array;
  /** Best impact of the query word at hand, and which word that is (counted from 1). */
  readonly best: Float32Array;
  readonly bestOf: Uint16Array;
  readonly touched: Uint32Array;
  count: number;
  /** Share of an exact match the query gives each term. */
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
  const best = bestTools({
    index,
    terms,
    action,
    weights,
    accepts,
    capacity: limit + pins.length + spareCandidates,
  });
  const ranked = spreadOverServers(index, best, weights, limit + pins.length);
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
  const { score, covered, bestOf, touched, match } = scratch;
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
  for (let at = 0; at < scratch.count; at++) {
    const tool = touched[at]!;
    const own = index.toolAction[tool]!;
    const fit =
      action === 0 || own === 0 ? 1 : (own & action) !== 0 ? 1 + weights.actionFit : 1 - weights.actionClash;
    const total = fit * score[tool]! * (coverageBase + (1 - coverageBase) * (covered[tool]! / wanted));
    // The bonus for the name needs another walk, so only tools that it could lift into the best get one.
    if (total * (1 + nameCoverage) > top.least && (accepts === undefined || accepts(tool))) {
      top.add(tool, total * (1 + nameCoverage * nameMatch(index, match, tool)));
    }
    score[tool] = covered[tool] = bestOf[tool] = 0;
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
 * A query word counts once per tool, by its best variant. Variants come with the closest first, so the first to reach a
 * tool decides how far the word covers it. Kept apart and small: the engine compiles it during the first query already.
 */
function addPostings(postings: Uint32Array, scratch: Scratch, { from, to, scale, cover, order }: Span): void {
  const { score, covered, best, bestOf } = scratch;
  for (let at = from; at < to; at++) {
    const packed = postings[at]!;
    const tool = packed >>> IMPACT_BITS;
    const impact = (packed & impactMask) * scale;
    const seen = bestOf[tool]!;
    if (seen !== order) {
      if (seen === 0) scratch.touched[scratch.count++] = tool;
      bestOf[tool] = order;
      best[tool] = impact;
      score[tool] = score[tool]! + impact;
      covered[tool] = covered[tool]! + cover;
    } else if (impact > best[tool]!) {
      score[tool] = score[tool]! + impact - best[tool]!;
      best[tool] = impact;
    }
  }
}

/** Share of the tool's name, by IDF, that the query has. */
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
    const tools = (): Float32Array => new Float32Array(toolCount);
    scratch = {
      score: tools(),
      covered: tools(),
      best: tools(),
      bestOf: new Uint16Array(toolCount),
      touched: new Uint32Array(toolCount),
      count: 0,
      match: new Float32Array(termCount),
    };
    scratches.set(index, scratch);
  }
  return scratch;
}
