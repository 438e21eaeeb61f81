/**
 * Owns: the cost of a ToolSearch for the main thread, and how often the right tool is among the first five.
 * The cache worker's own task makes the catalog and main's own code reads it, so users run the same code.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { crc32, inflateRawSync } from "node:zlib";
import { type Catalog, catalogFrom } from "../../src/catalog/catalog.ts";
import { searchCatalog } from "../../src/catalog/search.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { type CatalogSettings, DEFAULT_CATALOG_SETTINGS } from "../../src/shared/protocol/session.ts";
import { decodeSnapshot } from "../../src/shared/snapshot/snapshot.ts";
import {
  hasSearchData,
  hitAt5,
  labelledQueries,
  type Outcome,
  outcomesOf,
  realTools,
  serverDescriptions,
} from "../../test/support/search-data.ts";
import { buildSnapshot } from "../../workers/cache/snapshot/snapshot.ts";
import type { CachedTool } from "../../workers/shared/listed.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { percentile } from "../support/stats.ts";
import { syntheticQueries, syntheticTools, wholeTasks } from "../support/synthetic-tools.ts";

const FIRST_QUERY = join(import.meta.dirname, "..", "support", "first-query.ts");
const SIZES = [500, 2_000, 10_000];
const TOOLS_PER_SERVER = 50;
const QUERIES = 400;
/** These queries are not in the percentiles, because V8 has not optimised the code yet. */
const WARM_UP_QUERIES = 50;
const DEFAULT_RUNS = 3;

type Tool = CachedTool & { server: string };

interface Source {
  label: string;
  tools: (count: number) => Tool[];
  queries: readonly string[];
  /** Requests as long as a whole task. */
  tasks: readonly string[];
}

/** Percent by natural and keyword wording, measured with the same queries in the outside folder ../shared/search. */
const OTHERS: readonly [name: string, natural: number, keyword: number][] = [
  ["pi-mcp-adapter 2.36.0", 46.5, 55.7],
  ["10/5/4/3 weights as others use them", 64.7, 72.3],
  ["Pi 1.5.2 tool_search", 74.9, 77.6],
  ["MiniSearch, prefix and fuzzy", 77, 79.5],
  ["BM25F, best known before", 84.6, 82.2],
];
/** Targets by the number of tools. */
const TARGETS_US: Readonly<Record<number, { p50?: number; p99: number }>> = {
  2000: { p50: 50, p99: 300 },
  10000: { p99: 600 },
};
const FIRST_QUERY_TARGET_MS = 3;
const TASK_TOOLS = 3_300;
const TASK_TARGET_US = 600;
const INDEX_TARGET_BYTES = 1_024;
const HIT_TARGETS = { natural: 89, keyword: 88 };

/** Repeats the tools under other server names until there are `count`: the postings grow, but no terms are new. */
function repeat(tools: readonly Tool[], count: number): Tool[] {
  return Array.from({ length: count }, (_, index) => {
    const tool = tools[index % tools.length] as Tool;
    const round = Math.floor(index / tools.length);
    return round === 0 ? tool : { ...tool, server: `${tool.server}-${round + 1}` };
  });
}

function realSource(): Source {
  const tools = realTools() as Tool[];
  const texts = labelledQueries().flatMap(({ query, keyword }) => [query, keyword]);
  return {
    label: "real",
    tools: (count) => repeat(tools, count),
    queries: sample(texts, QUERIES),
    tasks: wholeTasks(labelledQueries().map(({ query }) => query)),
  };
}

function syntheticSource(): Source {
  const tools = (count: number): Tool[] =>
    syntheticTools(count, 1).map((tool, index) => ({
      ...tool,
      server: `server-${Math.floor(index / TOOLS_PER_SERVER) + 1}`,
    }));
  return {
    label: "synthetic",
    tools,
    queries: syntheticQueries(QUERIES),
    tasks: wholeTasks(syntheticQueries(2_000)),
  };
}

/** Items at equal distances over the whole list. */
const sample = (texts: readonly string[], count: number): string[] =>
  Array.from({ length: Math.min(count, texts.length) }, (_, index) =>
    String(texts[Math.floor((index * texts.length) / Math.min(count, texts.length))]),
  );

function snapshotOf(tools: readonly Tool[], search: CatalogSettings["search"] = "ranked"): Uint8Array {
  const texts = serverDescriptions();
  const servers = [...Map.groupBy(tools, (tool) => tool.server)].map(([name, own]) => ({
    name,
    project: false,
    about: texts[name]?.description ?? "",
    toolsKnown: true,
    tools: own.map((tool) => ({ ...tool, direct: false })),
  }));
  const settings = { ...DEFAULT_CATALOG_SETTINGS, search };
  return buildSnapshot({ servers, settings }).snapshot;
}

/** Makes one query like ToolSearch. */
function ask(catalog: Catalog, query: string): void {
  searchCatalog(catalog, query, LIMITS.searchResults + LIMITS.searchNamesMore);
}

function indexBytes(snapshot: Uint8Array): number {
  const decoded = decodeSnapshot(snapshot, inflateRawSync, crc32);
  if (!decoded) throw new Error("the snapshot cannot be read back");
  return decoded.index.length;
}

async function firstQuery(snapshotFile: string): Promise<{ wallMs: number; cpuMs: number }> {
  const { stdout } = await promisify(execFile)(process.execPath, [FIRST_QUERY, snapshotFile]);
  return JSON.parse(stdout) as { wallMs: number; cpuMs: number };
}

function timed(work: () => void): number {
  const startMs = performance.now();
  work();
  return performance.now() - startMs;
}

interface Timing {
  openMs: number;
  queriesMs: number[];
}

function measure(snapshot: Uint8Array, queries: readonly string[]): Timing {
  let catalog: Catalog | undefined;
  const openMs = timed(() => {
    catalog = catalogFrom(snapshot);
  });
  if (catalog === undefined) throw new Error("the snapshot cannot be read back");
  const opened = catalog;
  const all = queries.map((query) => timed(() => ask(opened, query)));
  return { openMs, queriesMs: all.slice(WARM_UP_QUERIES) };
}

async function rowsOfSize(source: Source, count: number, runs: number, folder: string): Promise<Row[]> {
  const snapshot = snapshotOf(source.tools(count));
  const timings = Array.from({ length: runs }, () => measure(snapshot, source.queries));
  const name = `${count.toLocaleString("en-US")} ${source.label} tools`;
  const firsts: { wallMs: number; cpuMs: number }[] = [];
  const file = join(folder, "first.bin");
  await writeFile(file, snapshot);
  for (let i = 0; i < runs; i++) firsts.push(await firstQuery(file));
  const row = (metric: string, unit: Row["unit"], values: number[], target?: number): Row => ({
    case: name,
    metric,
    unit,
    values,
    ...(target === undefined ? {} : { target }),
  });
  const targets = TARGETS_US[count];
  const query = (fraction: number): number[] =>
    timings.map(({ queriesMs }) => percentile(queriesMs, fraction) * 1_000);
  return [
    row("query, p50", "µs", query(0.5), targets?.p50),
    row("query, p99", "µs", query(0.99), targets?.p99),
    row(
      "first query of a process, opens the index",
      "ms",
      firsts.map(({ wallMs }) => wallMs),
      count === 2_000 ? FIRST_QUERY_TARGET_MS : undefined,
    ),
    row(
      "the same, CPU of the thread",
      "ms",
      firsts.map(({ cpuMs }) => cpuMs),
    ),
    row(
      "open the snapshot",
      "ms",
      timings.map(({ openMs }) => openMs),
    ),
    row("size of the snapshot", "KB", [snapshot.length / 1024]),
    row("index in it, a tool", "bytes", [indexBytes(snapshot) / count], INDEX_TARGET_BYTES),
  ];
}

/** The time of queries as long as a whole task. Warmed up by the usual queries. */
function taskRows({ label, tools, queries, tasks }: Source, runs: number): Row[] {
  const snapshot = snapshotOf(tools(TASK_TOOLS));
  const timings = Array.from({ length: runs }, () =>
    measure(snapshot, [...queries.slice(0, WARM_UP_QUERIES), ...tasks]),
  );
  const row = (metric: string, fraction: number, target?: number): Row => ({
    case: `${TASK_TOOLS.toLocaleString("en-US")} ${label} tools`,
    metric,
    unit: "µs",
    values: timings.map(({ queriesMs }) => percentile(queriesMs, fraction) * 1_000),
    ...(target === undefined ? {} : { target }),
  });
  return [
    row("a whole task as the query, p50", 0.5),
    row("a whole task as the query, p99", 0.99, TASK_TARGET_US),
  ];
}

/** Percentages of queries whose right tool is among the first five. The search is the one of ToolSearch. */
function hitRows(): Row[] {
  const hits = (name: string, natural: number, keyword: number): Row[] => [
    { case: name, metric: "hit@5, natural", unit: "%", values: [natural] },
    { case: name, metric: "hit@5, keyword", unit: "%", values: [keyword] },
  ];
  const rows = OTHERS.flatMap(([name, natural, keyword]) => hits(`${name} (README)`, natural, keyword));
  const queries = labelledQueries();
  for (const search of ["weighted", "ranked"] as const) {
    const catalog = catalogFrom(snapshotOf(realTools() as Tool[], search));
    const rank = (query: string, limit: number, server?: string): string[] =>
      catalog
        ? searchCatalog(catalog, query, limit, server).hits.map(
            ({ tool }) => `${tool.server.name}/${tool.tool}`,
          )
        : [];
    const rowsOf = (label: string, outcomes: readonly Outcome[]): Row[] =>
      hits(`ours, ${search}${label}`, hitAt5(outcomes, "query"), hitAt5(outcomes, "keyword"));
    const wanted = search === "ranked" ? ` (wanted: ${HIT_TARGETS.natural} / ${HIT_TARGETS.keyword})` : "";
    rows.push(...rowsOf(wanted, outcomesOf(rank, queries, LIMITS.searchResults)));
    if (search !== "ranked") continue;
    // One query at a time, since each has its own server.
    const withServer = (ask: (query: string, limit: number, server: string) => string[]): Outcome[] =>
      queries.flatMap((query) => {
        const [server = ""] = query.relevant[0]?.split("/") ?? [];
        return outcomesOf((text, limit) => ask(text, limit, server), [query], LIMITS.searchResults);
      });
    const inWords = withServer((query, limit, server) => rank(`${server} ${query}`, limit));
    rows.push(
      ...rowsOf(", the query begins with the server", inWords),
      ...rowsOf(", server set", withServer(rank)),
    );
  }
  return rows;
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const source = hasSearchData ? realSource() : syntheticSource();
  const folder = await mkdtemp(join(tmpdir(), "pmt-search-"));
  try {
    const rows: Row[] = hasSearchData ? hitRows() : [];
    for (const count of SIZES) {
      progress(`search: ${count} ${source.label} tools`);
      rows.push(...(await rowsOfSize(source, count, runs, folder)));
    }
    progress("search: whole tasks");
    rows.push(...taskRows(source, runs));
    return rows;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const search: Scenario = {
  name: "search",
  description: "right tool among five, and the time of a ToolSearch on the main thread",
  run,
};
