/**
 * Measures the use of each part of the search ranking: every row removes one part from the current weights.
 * usage: ablation.ts [--json]
 */
import { WEIGHTS, type Weights } from "../../src/shared/search/ranked/weights.ts";
import {
  createRanker,
  hitAt5,
  labelledQueries,
  mrrAt5,
  outcomesOf,
  realTools,
} from "../../test/support/search-data.ts";

type Fields = Weights["field"];
const field = (change: Partial<Fields>): Weights => ({ ...WEIGHTS, field: { ...WEIGHTS.field, ...change } });
const synonym = (change: Partial<Weights["synonym"]>): Weights => ({
  ...WEIGHTS,
  synonym: { ...WEIGHTS.synonym, ...change },
});
const zero = { name: 0, server: 0, lead: 0, description: 0, paramName: 0, paramText: 0, serverText: 0 };

const cases: [part: string, weights: Weights][] = [
  ["all", WEIGHTS],
  ["name as one of the fields (weight 1)", field({ name: 1 })],
  ["server name", field({ server: 0 })],
  ["first sentence counts extra", field({ lead: 0 })],
  ["description, all of it", field({ lead: 0, description: 0 })],
  ["parameter names", field({ paramName: 0 })],
  ["parameter texts", field({ paramText: 0 })],
  ["parameters, both", field({ paramName: 0, paramText: 0 })],
  ["server title and instructions", field({ serverText: 0 })],
  ["length normalisation", { ...WEIGHTS, lengthNorm: zero }],
  ["IDF by servers", { ...WEIGHTS, serverIdf: 0 }],
  ["coverage of the query", { ...WEIGHTS, coverageBase: 1 }],
  ["coverage of the name", { ...WEIGHTS, nameCoverage: 0 }],
  ["action of the tool", { ...WEIGHTS, actionFit: 0, actionClash: 0 }],
  ["synonyms: same", synonym({ same: 0 })],
  ["synonyms: verbs", synonym({ verb: 0 })],
  ["synonyms: nouns", synonym({ noun: 0 })],
  ["synonyms: fallbacks", synonym({ fallback: 0 })],
  ["synonyms: translations", synonym({ translation: 0 })],
  ["synonyms, all", synonym({ same: 0, verb: 0, noun: 0, fallback: 0, translation: 0 })],
  ["neighbours joined", { ...WEIGHTS, joined: 0 }],
  ["parts of a brand count less", { ...WEIGHTS, partOfJoined: 1 }],
  ["repeated words count more", { ...WEIGHTS, repeat: 0 }],
  ["quoted values count less", { ...WEIGHTS, literal: 1 }],
  ["guess: two words in one", { ...WEIGHTS, compound: 0 }],
  ["guess: prefix", { ...WEIGHTS, prefix: 0 }],
  ["guess: one slip", { ...WEIGHTS, slip: 0 }],
  ["spread over servers", { ...WEIGHTS, diversity: 1 }],
];

const tools = realTools();
const queries = labelledQueries();
const round = (value: number): number => Number(value.toFixed(1));
const rows = cases.map(([part, weights]) => {
  const list = outcomesOf(createRanker(tools, weights), queries);
  return {
    without: part,
    natural: round(hitAt5(list, "query")),
    keyword: round(hitAt5(list, "keyword")),
    mrrNatural: round(mrrAt5(list, "query")),
    mrrKeyword: round(mrrAt5(list, "keyword")),
  };
});
if (process.argv.includes("--json")) console.log(JSON.stringify(rows));
else console.table(rows);
