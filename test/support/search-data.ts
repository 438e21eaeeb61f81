/**
 * Owns: real catalogs with labelled queries, this package's ranker over them, and the measures of its quality.
 * Must not: be required by a run: the data lie outside the repository, beside its root or in the folder SEARCH_DATA.
 * Called by: the test of the lowest accepted quality, the benches, and bench/search-ranker.ts for the evaluator.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { buildIndex } from "../../src/shared/search/build.ts";
import { openIndex } from "../../src/shared/search/index-format.ts";
import { searchIndex } from "../../src/shared/search/ranked.ts";
import { type SearchTool, WEIGHTS, type Weights } from "../../src/shared/search/weights.ts";

export const dataFolder =
  process.env.SEARCH_DATA ?? join(import.meta.dirname, "..", "..", "..", "shared", "search");

export const hasSearchData = existsSync(join(dataFolder, "catalog.json"));

const read = (file: string): unknown => JSON.parse(readFileSync(join(dataFolder, file), "utf8"));

export interface LabelledQuery {
  id: string;
  /** The query as a sentence. */
  query: string;
  keyword: string;
  /** Ids `server/name` of the tools that answer the query. */
  relevant: string[];
  source: string;
}

export type Wording = "query" | "keyword";

/** One query in one wording. `rank` is the place of the first relevant tool, from 0, or -1 if none was found. */
export interface Outcome {
  query: LabelledQuery;
  wording: Wording;
  rank: number;
}

export type Rank = (query: string, limit: number) => string[];

/** The evaluator measures these sources separately: texts of tasks for several tools, and a small synthetic catalog. */
const apart = new Set(["livemcpbench-task", "mcpverse", "ironclaw"]);

export const realTools = (): SearchTool[] =>
  (read("catalog.json") as (SearchTool & { origin: string })[]).filter(({ origin }) => origin !== "ironclaw");

export const labelledQueries = (): LabelledQuery[] =>
  (read("queries.public.json") as LabelledQuery[]).filter(
    ({ relevant, source }) => relevant.length > 0 && !apart.has(source),
  );

/** Title and instructions that each server gives at its connect. */
export function serverDescriptions(): Record<string, { description?: string }> {
  if (!existsSync(join(dataFolder, "servers.json"))) return {};
  return read("servers.json") as Record<string, { description?: string }>;
}

export const withServerTexts = (tools: readonly SearchTool[]): SearchTool[] => {
  const servers = serverDescriptions();
  return tools.map((tool) => ({ ...tool, serverDescription: servers[tool.server]?.description ?? "" }));
};

/** This package's ranking in the evaluator's form: a query -> ids `server/name`, best first. */
export function createRanker(tools: readonly SearchTool[], weights: Weights = WEIGHTS): Rank {
  const index = openIndex(buildIndex(withServerTexts(tools), weights));
  const ids = tools.map(({ server, name }) => `${server}/${name}`);
  return (query, limit) =>
    searchIndex(index, query, limit, { weights }).hits.map(({ tool }) => ids[tool] ?? "");
}

export function outcomesOf(rank: Rank, queries: readonly LabelledQuery[], depth = 10): Outcome[] {
  return queries.flatMap((query) =>
    (["query", "keyword"] as const).map((wording) => ({
      query,
      wording,
      rank: rank(query[wording], depth).findIndex((id) => query.relevant.includes(id)),
    })),
  );
}

const share = (list: readonly Outcome[], worth: (rank: number) => number): number =>
  (100 * list.reduce((sum, { rank }) => sum + worth(rank), 0)) / list.length;

/** Percent of queries with a relevant tool among the first five. */
export const hitAt5 = (list: readonly Outcome[], wording: Wording): number =>
  share(
    list.filter((outcome) => outcome.wording === wording),
    (rank) => (rank >= 0 && rank < 5 ? 1 : 0),
  );

/** Mean reciprocal rank within the first five, in percent. */
export const mrrAt5 = (list: readonly Outcome[], wording: Wording): number =>
  share(
    list.filter((outcome) => outcome.wording === wording),
    (rank) => (rank >= 0 && rank < 5 ? 1 / (rank + 1) : 0),
  );
