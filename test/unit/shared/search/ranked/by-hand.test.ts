/**
 * The search beside a plain reading of its rules: each tool is scored alone, all are sorted. Names, order and scores must
 * be the same, whatever is done to make the search fast. Uses the real catalog if it lies beside the repository.
 */
import { expect, test } from "vitest";
import { buildIndex } from "../../../../../src/shared/search/build.ts";
import {
  IMPACT_BITS,
  openIndex,
  type ToolIndex,
  WEIGHT_BITS,
} from "../../../../../src/shared/search/index-format.ts";
import { findPins } from "../../../../../src/shared/search/pins.ts";
import { queryTerms } from "../../../../../src/shared/search/query.ts";
import { type Scored, searchIndex } from "../../../../../src/shared/search/ranked.ts";
import { type SearchTool, WEIGHTS } from "../../../../../src/shared/search/weights.ts";
import { amount } from "../../../../support/long.ts";
import {
  hasSearchData,
  labelledQueries,
  realTools,
  withServerTexts,
} from "../../../../support/search-data.ts";
import { catalog } from "../catalog.ts";

const LIMIT = 15;

/** Packed numbers of one row: the upper bits and the lower `bits`. */
const unpack = (items: Uint32Array, start: Uint32Array, row: number, bits: number): [number, number][] =>
  [...items.subarray(start[row], start[row + 1])].map((packed) => [packed >>> bits, packed % 2 ** bits]);

interface Variant {
  weight: number;
  /** Tool -> quantised impact. */
  impacts: Map<number, number>;
}

function byHand(index: ToolIndex, query: string): { tool: number; score: number }[] {
  const { terms, action } = queryTerms(index, query, WEIGHTS);
  const match = new Map<number, number>();
  const words = terms.map(({ variants, weight, idf }) => {
    for (const variant of variants) {
      match.set(variant.term, Math.max(match.get(variant.term) ?? 0, variant.weight));
    }
    const read = variants.map(
      (variant): Variant => ({
        weight: variant.weight,
        impacts: new Map(unpack(index.postings, index.postingStart, variant.term, IMPACT_BITS)),
      }),
    );
    return { variants: read, weight, idf };
  });
  const wanted = words.reduce((sum, { weight, idf }) => sum + weight * idf, 0);
  const scored: Scored[] = [];
  for (let tool = 0; tool < index.toolCount; tool++) {
    let [score, covered] = [0, 0];
    for (const { variants, weight, idf } of words) {
      const found = variants.filter(({ impacts }) => impacts.has(tool));
      if (found.length === 0) continue;
      score += Math.max(
        ...found.map((one) => (one.impacts.get(tool) ?? 0) * one.weight * weight * index.impactScale),
      );
      covered += (found[0]?.weight ?? 0) * weight * idf;
    }
    if (score === 0) continue;
    const own = index.toolAction[tool] ?? 0;
    const fit =
      action === 0 || own === 0 ? 1 : own & action ? 1 + WEIGHTS.actionFit : 1 - WEIGHTS.actionClash;
    const named = unpack(index.nameTerms, index.nameStart, tool, WEIGHT_BITS)
      .map(([term, share]) => ((match.get(term) ?? 0) * share) / (2 ** WEIGHT_BITS - 1))
      .reduce((sum, share) => sum + share, 0);
    const coverage = WEIGHTS.coverageBase + (1 - WEIGHTS.coverageBase) * (covered / wanted);
    scored.push({ tool, score: fit * score * coverage * (1 + WEIGHTS.nameCoverage * Math.min(1, named)) });
  }
  scored.sort((a, b) => b.score - a.score || a.tool - b.tool);
  const pins = findPins(index, query);
  const room = LIMIT + pins.length;
  const ranked = scored.slice(0, room);
  const rest = ranked.filter(({ tool }) => !pins.includes(tool));
  return [...pins.map((tool) => ({ tool, score: ranked[0]?.score ?? 1 })), ...rest].slice(
    0,
    Math.max(LIMIT, pins.length),
  );
}

/** Sums of many impacts differ in the sixth digit, since the search adds 32-bit numbers; so equal tools may change places. */
const isNear = (one: number, other: number): boolean => Math.abs(one - other) <= 1e-4 * Math.abs(one);

/** The queries for which the search does not find what the rules say. */
function differing(tools: readonly SearchTool[], queries: readonly string[]): string[] {
  const index = openIndex(buildIndex(tools));
  return queries.filter((query) => {
    const { hits } = searchIndex(index, query, LIMIT);
    const expected = byHand(index, query);
    const scores = new Map(expected.map(({ tool, score }) => [tool, score]));
    const same = hits.every(({ tool, score }, at) => {
      const there = expected[at];
      if (!there || !isNear(score, there.score)) return false;
      return tool === there.tool || isNear(score, scores.get(tool) ?? score);
    });
    return !same || hits.length !== expected.length;
  });
}

test("a small catalog: the search finds what the rules say", () => {
  const queries = [
    "create an issue",
    "search the web for scientific articles",
    "use read_file to write a report about files in a directory",
    "summarize report of the mysql database",
  ];
  expect(differing(catalog, queries)).toEqual([]);
});

test.runIf(hasSearchData)("the real catalog: requests and whole tasks find what the rules say", () => {
  const texts = labelledQueries().flatMap(({ query, keyword }) => [query, keyword]);
  const some = texts.filter((_, at) => at % amount(48, 16) === 0);
  const tasks = [0, 1, 2, 3]
    .slice(0, amount(2, 4))
    .map((at) => texts.slice(at * 100, at * 100 + 25).join(" "));
  expect(differing(withServerTexts(realTools()), [...some, ...tasks])).toEqual([]);
});
