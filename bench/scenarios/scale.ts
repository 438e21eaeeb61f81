/**
 * Owns: what very large catalogs cost: 1,000 to 50,000 tools of ten servers. Load, first request, a search through the
 * model's tool and alone, memory, and the size of the snapshot, beside the peers as far as they get.
 * Must not: end because a client cannot work with that many tools. The reason is its cell.
 */
import { catalogFrom } from "../../src/catalog/catalog.ts";
import { searchCatalog } from "../../src/catalog/search.ts";
import { LIMITS } from "../../src/shared/protocol/limits.ts";
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { type MeasuredPi, startMeasured } from "../support/measured-pi.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { learnt, snapshotWith } from "../support/snapshots.ts";
import { percentile } from "../support/stats.ts";
import { syntheticQueries, wholeTasks } from "../support/synthetic-tools.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 3;
const SERVERS = 10;
const SIZES = [1_000, 2_000, 5_000, 10_000, 50_000];
/** Each server of the benches has two tools of its own. */
const OWN_TOOLS = 2;
const WINDOW_MS = 2_000;
/** A client has this long to learn all tools, and to make all searches of a run. */
const LEARN_MS = 120_000;
const SEARCHES = 20;
const QUERIES = 400;
const WARM_UP_QUERIES = 50;
const LOAD_TARGETS_MS: Readonly<Record<number, number>> = { 2000: 15, 10000: 15, 50000: 30 };
const FIRST_REQUEST_TARGETS_MS: Readonly<Record<number, number>> = { 2000: 20 };
const SEARCH_TARGETS_US: Readonly<Record<number, number>> = { 50000: 2_000 };

interface Sample {
  loadMs: number;
  firstRequestMs: number;
  rssMb: number;
  /** From the request that the search answers until the one that holds its result. Bare Pi has no search. */
  searchesMs: number[];
  searchedRssMb: number;
}

interface Case {
  variant: Variant;
  tools: number;
  home: BenchHome;
  samples: Sample[];
  /** Why there are no figures. */
  failure?: string;
}

const shown = (tools: number): string => `${tools.toLocaleString("en-US")} tools`;
/** Bare Pi has no tools, but is a case of each size: the figures of one size are of the same minutes. */
const nameOf = ({ id, label }: Pick<Variant, "id" | "label">, tools: number): string =>
  id === "none" ? `bare Pi, beside ${shown(tools)}` : `${label}, ${shown(tools)}`;

/** Starts Pi once, so that the client stores the tools. Ours must hold all of them, or its figures would be of fewer. */
async function learn({ variant, tools, home }: Case): Promise<void> {
  await home.reset({ cold: true });
  const pi = await startMeasured(variant, home);
  try {
    await pi.prompt();
    if (!variant.entry) return;
    await home.allListed();
    if (variant.id !== "ours") return await pi.untilAge(LEARN_MS / 10);
    await learnt(home.home, tools);
  } finally {
    await pi.dispose();
  }
}

async function search(pi: MeasuredPi, variant: Variant): Promise<number[]> {
  const turns = syntheticQueries(SEARCHES).map((query) => variant.seek(query));
  const { requests } = await pi.prompt(...turns);
  const arrived = requests.map(({ arrivedAtMs }) => arrivedAtMs);
  if (arrived.length !== SEARCHES + 1) throw new Error(`${arrived.length - 1} of ${SEARCHES} searches`);
  return arrived.slice(1).map((at, index) => at - (arrived[index] ?? at));
}

async function measureOnce({ variant, home }: Case): Promise<Sample> {
  await home.reset({ cold: false });
  const pi = await startMeasured(variant, home);
  try {
    const { requests } = await pi.prompt();
    const firstRequestMs = (requests[0]?.arrivedAtMs ?? Number.NaN) - pi.startedAtMs;
    await pi.untilAge(WINDOW_MS);
    const { loadMs, rssMb } = await pi.report();
    // A peer connects all servers at the start, to know their tools.
    if (variant.entry && variant.id !== "ours") await home.allListed();
    const searchesMs = variant.entry ? await search(pi, variant) : [];
    const searched = await pi.report();
    return { loadMs, firstRequestMs, rssMb, searchesMs, searchedRssMb: searched.rssMb };
  } finally {
    await pi.dispose();
  }
}

async function attempt(one: Case, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (one.variant.id === "none") throw error;
    one.failure =
      `fails: ${(error instanceof Error ? error.message : String(error)).split("\n", 1)[0]}`.slice(0, 100);
  }
}

function piRows({ variant, tools, samples, failure }: Case, compare: boolean): Row[] {
  const isOurs = variant.id === "ours";
  const compared = compare && variant.id !== "none";
  const row = (
    metric: string,
    unit: Row["unit"],
    pick: (sample: Sample) => number,
    target?: number,
  ): Row => ({
    case: nameOf(variant, tools),
    metric,
    unit,
    values: failure === undefined ? samples.map(pick) : [],
    ...(compared ? { baseline: nameOf({ id: "none", label: "" }, tools) } : {}),
    ...(isOurs || variant.id === "none" ? {} : { ours: `ours, ${shown(tools)}` }),
    ...(isOurs && compared && target !== undefined ? { target } : {}),
    ...(failure === undefined ? {} : { note: failure }),
  });
  const startRows = [
    ...(variant.id === "builtin"
      ? []
      : [row("load and factory", "ms", ({ loadMs }) => loadMs, LOAD_TARGETS_MS[tools])]),
    row("first request after", "ms", ({ firstRequestMs }) => firstRequestMs, FIRST_REQUEST_TARGETS_MS[tools]),
    row("memory of the process at 2 s", "MB", ({ rssMb }) => rssMb),
  ];
  if (variant.id === "none") return startRows;
  const searched =
    (fraction: number) =>
    ({ searchesMs }: Sample) =>
      percentile(searchesMs, fraction);
  return [
    ...startRows,
    row("memory after the searches", "MB", ({ searchedRssMb }) => searchedRssMb),
    row("from request to request with a search between, p50", "ms", searched(0.5)),
    row("the same, longest", "ms", searched(1)),
  ];
}

/** The searches alone, in this process, over the snapshot that Pi has read. */
function queryRows(tools: number, snapshot: Uint8Array, runs: number): Row[] {
  const asTimes = (queries: readonly string[]): number[] => {
    const catalog = catalogFrom(snapshot);
    if (!catalog) throw new Error("the snapshot cannot be read back");
    return queries.map((query) => {
      const from = performance.now();
      searchCatalog(catalog, query, LIMITS.searchResults + LIMITS.searchNamesMore);
      return (performance.now() - from) * 1_000;
    });
  };
  const queries = syntheticQueries(QUERIES);
  const short = Array.from({ length: runs }, () => asTimes(queries).slice(WARM_UP_QUERIES));
  const long = Array.from({ length: runs }, () => asTimes(wholeTasks(syntheticQueries(10 * QUERIES))));
  const row = (metric: string, all: readonly number[][], fraction: number, target?: number): Row => ({
    case: `ours, ${shown(tools)}`,
    metric,
    unit: "µs",
    values: all.map((times) => percentile(times, fraction)),
    ...(target === undefined ? {} : { target }),
  });
  return [
    row("a search alone, p50", short, 0.5),
    row("a search alone, p99", short, 0.99, SEARCH_TARGETS_US[tools]),
    row("a whole task as the query, p99", long, 0.99),
    {
      case: `ours, ${shown(tools)}`,
      metric: "size of the snapshot",
      unit: "KB",
      values: [snapshot.length / 1024],
    },
  ];
}

/** All cases of one size in turn. `failed`: the peers that have not managed a smaller size are not tried again. */
async function runSize(
  tools: number,
  variants: readonly Variant[],
  failed: Map<string, string>,
  options: Pick<ScenarioOptions, "progress"> & { runs: number },
): Promise<{ cases: Case[]; alone: Row[] }> {
  const { runs, progress } = options;
  const cases: Case[] = [];
  try {
    for (const variant of variants) {
      const shape = { servers: SERVERS, toolsPerServer: tools / SERVERS - OWN_TOOLS };
      const lifecycle = variant.id === "ours" ? "lazy" : "eager";
      const one: Case = {
        variant,
        tools,
        home: await createBenchHome(variant, { ...shape, lifecycle }),
        samples: [],
      };
      cases.push(one);
      const before = failed.get(variant.id);
      if (before !== undefined) {
        one.failure = before;
        continue;
      }
      progress(`scale: ${nameOf(variant, tools)} learns the tools`);
      await attempt(one, () => learn(one));
    }
    for (let index = 0; index < runs; index++) {
      progress(`scale: ${shown(tools)}, run ${index + 1} of ${runs}`);
      for (const one of cases) {
        if (one.failure !== undefined) continue;
        await attempt(one, async () => void one.samples.push(await measureOnce(one)));
      }
    }
    for (const { variant, failure } of cases) {
      if (failure !== undefined && !failed.has(variant.id)) {
        failed.set(variant.id, `not tried: fails with ${shown(tools)}`);
      }
    }
    const ours = cases.find(({ variant }) => variant.id === "ours");
    const snapshot = ours && (await snapshotWith(ours.home.home, tools));
    return { cases, alone: snapshot ? queryRows(tools, snapshot, runs) : [] };
  } finally {
    for (const { home } of cases) await home.dispose();
  }
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const variants = await loadVariants(options);
  const compare = options.vs.includes("none");
  const failed = new Map<string, string>();
  const rows: Row[] = [];
  for (const tools of SIZES) {
    const { cases, alone } = await runSize(tools, variants, failed, { runs, progress });
    rows.push(...cases.flatMap((one) => piRows(one, compare)), ...alone);
  }
  return rows;
}

export const scale: Scenario = {
  name: "scale",
  description: "1,000 to 50,000 tools of ten servers: load, first request, searches, memory, snapshot",
  run,
};
