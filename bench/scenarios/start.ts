/**
 * Owns: the cost of a start of the real Pi with this packed extension, with each peer, and without any: the first two
 * seconds, including one prompt.
 * Must not: start Pi by itself; bench/support/measured-pi.ts does.
 *
 * All cases run in turn within one sitting, so that a slow minute of the machine affects all cases alike.
 */
import { type BenchHome, createBenchHome, type HomeShape } from "../support/bench-home.ts";
import { startMeasured } from "../support/measured-pi.ts";
import type { ProbeReport } from "../support/probe-report.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 5;
/**
 * Every case is watched for the same time, because the heartbeat and Pi itself use CPU even when idle. The time
 * suffices for 20 servers to connect and for the work after that, such as a catalog event.
 */
const WINDOW_MS = 2_000;
const BARE = "bare Pi";

const LAZY: HomeShape = { servers: 20, toolsPerServer: 50, lifecycle: "lazy" };
const EAGER: HomeShape = { ...LAZY, lifecycle: "eager" };
const MANY: HomeShape = { ...LAZY, toolsPerServer: 100 };

interface Case {
  name: string;
  variant: Variant;
  shape: HomeShape;
  /** Caches are removed before each run, so that every server is connected to learn its tools. */
  cold: boolean;
  /** For a peer: the case of this package that it is compared with. */
  ours?: string;
  /** Limit in milliseconds for load and factory over an empty extension. */
  loadTargetMs?: number;
}

interface Sample {
  probe: ProbeReport;
  firstRequestMs: number;
  /** Undefined if servers are connected only when they are needed. */
  connectedMs: number | undefined;
  shutdownMs: number | undefined;
}

function casesOf(variant: Variant): Case[] {
  const common = { variant, cold: false };
  switch (variant.id) {
    case "none":
      return [{ ...common, name: BARE, shape: LAZY }];
    case "builtin":
      return [{ ...common, name: "built-in MCP", shape: EAGER, ours: "ours, warm, eager" }];
    case "adapter":
      return [
        { ...common, name: "adapter, warm, lazy", shape: LAZY, ours: "ours, warm, lazy" },
        { ...common, name: "adapter, warm, eager", shape: EAGER, ours: "ours, warm, eager" },
      ];
    case "ours":
      return [
        { ...common, name: "ours, cold", shape: LAZY, cold: true, loadTargetMs: 25 },
        { ...common, name: "ours, warm, lazy", shape: LAZY, loadTargetMs: 8 },
        { ...common, name: "ours, warm, eager", shape: EAGER, loadTargetMs: 8 },
        { ...common, name: "ours, warm, 2,000 tools", shape: MANY, loadTargetMs: 15 },
      ];
  }
}

async function startOnce({ variant, shape, cold }: Case, home: BenchHome): Promise<Sample> {
  await home.reset({ cold });
  const pi = await startMeasured(variant, home);
  try {
    const { requests } = await pi.prompt();
    const connects = variant.entry !== undefined && (cold || shape.lifecycle === "eager");
    const connectedMs = connects ? (await home.allListed()) - pi.startedAtMs : undefined;
    await pi.untilAge(WINDOW_MS);
    const probe = await pi.report();
    const arrivedAtMs = requests[0]?.arrivedAtMs;
    if (arrivedAtMs === undefined) throw new Error("Pi made no request");
    const { shutdownMs } = await pi.stop();
    return { probe, firstRequestMs: arrivedAtMs - pi.startedAtMs, connectedMs, shutdownMs };
  } finally {
    await pi.dispose();
  }
}

type Pick = (sample: Sample) => number | undefined;

/** Every case contains Pi's own cost, so the targets apply to the difference to bare Pi. */
function rowsOf(one: Case, samples: readonly Sample[], compare: boolean): Row[] {
  const { name, variant, cold, shape, loadTargetMs, ours } = one;
  const compared = compare && variant.id !== "none";
  const isOurs = variant.id === "ours";
  const row = (metric: string, unit: Row["unit"], pick: Pick, target?: number): Row => ({
    case: name,
    metric,
    unit,
    values: samples.map(pick).filter((value) => value !== undefined),
    ...(compared ? { baseline: BARE } : {}),
    ...(ours === undefined ? {} : { ours }),
    ...(compared && isOurs && target !== undefined ? { target } : {}),
  });
  // The handlers of the built-in MCP do not run between the halves of the probe.
  const outside = variant.id === "builtin";
  const cpuTargetMs = shape.lifecycle === "eager" ? 40 : undefined;
  const handlers = [
    row("load and factory", "ms", ({ probe }) => probe.loadMs, loadTargetMs),
    row("session_start handler", "ms", ({ probe }) => probe.sessionStartMs, 2),
    row("before_agent_start handler", "ms", ({ probe }) => probe.beforeAgentStartMs),
    row("session_shutdown handler", "ms", ({ shutdownMs }) => shutdownMs),
  ];
  const rows = [
    ...(outside ? [] : handlers),
    row("first request after", "ms", ({ firstRequestMs }) => firstRequestMs, 50),
    row("longest stall, loading", "ms", ({ probe }) => probe.longestStallLoadingMs, 10),
    row("longest stall, session", "ms", ({ probe }) => probe.longestStallSessionMs, 10),
    row("most CPU in one stall, session", "ms", ({ probe }) => probe.mostCpuInStallMs),
    row("main-thread CPU, first 2 s", "ms", ({ probe }) => probe.cpuMs, cpuTargetMs),
    row("memory of the process", "MB", ({ probe }) => probe.rssMb),
  ];
  const connects = variant.entry !== undefined && (cold || shape.lifecycle === "eager");
  return connects
    ? [...rows, row("all servers connected after", "ms", (sample) => sample.connectedMs)]
    : rows;
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const prepared: { one: Case; home: BenchHome; samples: Sample[] }[] = [];
  try {
    for (const one of (await loadVariants(options)).flatMap(casesOf)) {
      const home = await createBenchHome(one.variant, one.shape);
      prepared.push({ one, home, samples: [] });
      progress(`start: ${one.name} learns the tools`);
      await startOnce({ ...one, cold: one.variant.id === "ours" }, home);
    }
    for (let index = 0; index < runs; index++) {
      progress(`start: run ${index + 1} of ${runs}`);
      for (const { one, home, samples } of prepared) samples.push(await startOnce(one, home));
    }
  } finally {
    for (const { home } of prepared) await home.dispose();
  }
  const compare = options.vs.includes("none");
  return prepared.flatMap(({ one, samples }) => rowsOf(one, samples, compare));
}

export const start: Scenario = {
  name: "start",
  description:
    "the first two seconds of the real Pi with one prompt, 20 servers x 50 tools unless said otherwise",
  run,
};
