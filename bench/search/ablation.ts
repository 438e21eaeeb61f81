/**
 * Measures the use of each part of the search ranking: every row removes one part from the current weights.
 * usage: ablation.ts [--json]
 */
import { WEIGHTS, type Weights } from "../../src/shared/search/weights.ts";
import {
  createRanker,
  hitAt5,
  labelledQueries,
  mrrAt5,
  outcomesOf,
  realTools,
} from "../../test/support/search-data.ts";
import { PARTS, withFields, withSynonyms } from "./parts.ts";

const zero = {
  name: 0,
  keywords: 0,
  server: 0,
  lead: 0,
  description: 0,
  paramName: 0,
  paramText: 0,
  serverText: 0,
};

const cases: [part: string, weights: Weights][] = [
  ["all", WEIGHTS],
  ...PARTS.map(([part, without]): [string, Weights] => [part, without(WEIGHTS)]),
  ["name as one of the fields (weight 1)", withFields(WEIGHTS, { name: 1 })],
  ["server name", withFields(WEIGHTS, { server: 0 })],
  ["description, all of it", withFields(WEIGHTS, { lead: 0, description: 0 })],
  ["parameter names", withFields(WEIGHTS, { paramName: 0 })],
  ["parameters, both", withFields(WEIGHTS, { paramName: 0, paramText: 0 })],
  ["length normalisation", { ...WEIGHTS, lengthNorm: zero }],
  ["synonyms, all", withSynonyms(WEIGHTS, { same: 0, noun: 0, translation: 0 })],
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
