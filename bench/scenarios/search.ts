/**
 * Owns: what a ToolSearch costs the main thread: opening a snapshot, the first query, the queries after it.
 * Must not: judge the ranking; only its time counts here.
 * The catalog is made by the cache worker's own task and read as main reads it, so both are what users run.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Catalog, catalogFrom } from "../../src/catalog/catalog.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { parseQuery } from "../../src/search/query.ts";
import { publish } from "../../workers/cache/publish.ts";
import type { CachedTool } from "../../workers/cache/tool.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { percentile } from "../support/stats.ts";
import { syntheticTools } from "../support/synthetic-tools.ts";

/** Real catalogs and labelled queries, where they lie beside the repository. */
const DATA_DIR = join(import.meta.dirname, "..", "..", "..", "shared", "search");
const SIZES = [500, 2_000, 10_000];
const TOOLS_PER_SERVER = 50;
const QUERIES = 400;
/** Left out of the percentiles: the code is not optimised yet. The first of them is a figure of its own. */
const WARM_UP_QUERIES = 50;
const DEFAULT_RUNS = 3;

type Tool = CachedTool & { server: string };

interface Source {
  label: string;
  tools: (count: number) => Tool[];
  queries: readonly string[];
}

async function readJson<T>(name: string): Promise<T> {
  return JSON.parse(await readFile(join(DATA_DIR, name), "utf8")) as T;
}

/** Past its end the catalog repeats under other server names: longer postings, no new terms. */
function repeat(tools: readonly Tool[], count: number): Tool[] {
  return Array.from({ length: count }, (_, index) => {
    const tool = tools[index % tools.length] as Tool;
    const round = Math.floor(index / tools.length);
    return round === 0 ? tool : { ...tool, server: `${tool.server}-${round + 1}` };
  });
}

async function realSource(): Promise<Source> {
  const tools = await readJson<Tool[]>("catalog.json");
  const queries = await readJson<{ query: string; keyword: string }[]>("queries.public.json");
  const texts = queries.flatMap(({ query, keyword }) => [query, keyword]);
  return { label: "real", tools: (count) => repeat(tools, count), queries: sample(texts, QUERIES) };
}

function syntheticSource(): Source {
  const tools = (count: number): Tool[] =>
    syntheticTools(count, 1).map((tool, index) => ({
      ...tool,
      server: `server-${Math.floor(index / TOOLS_PER_SERVER) + 1}`,
    }));
  // Words of descriptions as people would put them, three to six of them.
  const queries = syntheticTools(QUERIES, 2).map(({ description }, index) =>
    description
      .split(" ")
      .slice(0, 3 + (index % 4))
      .join(" "),
  );
  return { label: "synthetic", tools, queries };
}

/** Evenly over the whole list. */
const sample = (texts: readonly string[], count: number): string[] =>
  Array.from({ length: Math.min(count, texts.length) }, (_, index) =>
    String(texts[Math.floor((index * texts.length) / Math.min(count, texts.length))]),
  );

async function snapshotOf(tools: readonly Tool[], folder: string): Promise<Uint8Array> {
  const servers = [...Map.groupBy(tools, (tool) => tool.server)].map(([name, own]) => ({
    name,
    project: false,
    tools: own,
  }));
  const paths = { cachePath: join(folder, "cache.json"), snapshotPath: join(folder, "snapshot.bin") };
  const { snapshot } = await publish({ ...paths, entries: {}, servers, knownChecksum: undefined });
  if (snapshot === undefined) throw new Error("the cache worker's task made no snapshot");
  return snapshot;
}

/** As the ToolSearch tool does it: parse, then look up or score. */
function ask(catalog: Catalog, query: string): void {
  const parsed = parseQuery(query);
  if (parsed.kind === "keywords") catalog.search(parsed.terms, LIMITS.searchResults);
}

function timed(work: () => void): number {
  const startMs = performance.now();
  work();
  return performance.now() - startMs;
}

interface Timing {
  openMs: number;
  firstMs: number;
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
  return { openMs, firstMs: all[0] ?? Number.NaN, queriesMs: all.slice(WARM_UP_QUERIES) };
}

async function rowsOfSize(source: Source, count: number, runs: number, folder: string): Promise<Row[]> {
  const snapshot = await snapshotOf(source.tools(count), folder);
  const timings = Array.from({ length: runs }, () => measure(snapshot, source.queries));
  const name = `${count.toLocaleString("en-US")} ${source.label} tools`;
  const row = (metric: string, unit: Row["unit"], values: number[]): Row => ({
    case: name,
    metric,
    unit,
    values,
  });
  const query = (fraction: number): number[] =>
    timings.map(({ queriesMs }) => percentile(queriesMs, fraction) * 1_000);
  return [
    row("query, p50", "µs", query(0.5)),
    row("query, p99", "µs", query(0.99)),
    row(
      "first query, opens the index",
      "ms",
      timings.map(({ firstMs }) => firstMs),
    ),
    row(
      "open the snapshot",
      "ms",
      timings.map(({ openMs }) => openMs),
    ),
    row("size of the snapshot", "KB", [snapshot.length / 1024]),
  ];
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const source = existsSync(DATA_DIR) ? await realSource() : syntheticSource();
  const folder = await mkdtemp(join(tmpdir(), "pmt-search-"));
  try {
    const rows: Row[] = [];
    for (const count of SIZES) {
      progress(`search: ${count} ${source.label} tools`);
      rows.push(...(await rowsOfSize(source, count, runs, folder)));
    }
    return rows;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const search: Scenario = {
  name: "search",
  description: "time of a ToolSearch on the main thread, without the wait for servers",
  run,
};
