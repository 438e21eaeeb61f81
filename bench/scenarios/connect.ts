/**
 * Owns: the cost for the real Pi when 20 eager servers with known tools all connect at its start.
 * Must not: send prompts; the start scenario does.
 */
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { type IdleBeat, longestWithin, startIdleBeat } from "../support/idle-beat.ts";
import { epochMs, startMeasured } from "../support/measured-pi.ts";
import type { ProbeReport } from "../support/probe-report.ts";
import { alone, type Row, type Scenario, type ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 3;
const SHAPE = { servers: 20, toolsPerServer: 50, lifecycle: "eager" } as const;
/** The same servers with 500 skills in all. */
const WITH_SKILLS = { ...SHAPE, skillsPerServer: 25 } as const;
/** Every variant is watched for this time, or longer if its servers are not connected by then. */
const WINDOW_MS = 3_000;
const AFTER_CONNECT_MS = 500;

interface Sample {
  probe: ProbeReport;
  connectedMs: number | undefined;
  /** Longest stall of an idle thread in the same time. */
  idleMs: number;
}

async function startOnce(variant: Variant, home: BenchHome, idle: IdleBeat): Promise<Sample> {
  await home.reset({ cold: false });
  await idle.take();
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    const connectedMs = variant.entry && (await home.allListed()) - pi.startedAtMs;
    await pi.untilAge(Math.max(WINDOW_MS, (connectedMs ?? 0) + AFTER_CONNECT_MS));
    const probe = await pi.report();
    const idleMs = longestWithin(await idle.take(), { fromMs: pi.startedAtMs, toMs: epochMs() });
    return { probe, connectedMs, idleMs };
  } finally {
    await pi.dispose();
  }
}

function rowsOf(variant: Variant, samples: readonly Sample[], variants: readonly Variant[]): Row[] {
  const bare = variants.find(({ id }) => id === "none");
  const isOurs = variant.id === "ours";
  const row = (metric: string, pick: (sample: Sample) => number | undefined, target?: number): Row => ({
    case: variant.label,
    metric,
    unit: "ms",
    values: samples.map(pick).filter((value) => value !== undefined),
    ...(bare && bare !== variant ? { baseline: bare.label } : {}),
    ...(isOurs ? {} : { ours: "ours" }),
    ...(isOurs && bare && target !== undefined ? { target } : {}),
  });
  const rows = [
    row("main-thread CPU", ({ probe }) => probe.cpuMs, 40),
    row("longest stall, loading", ({ probe }) => probe.longestStallLoadingMs, 10),
    row("longest stall, session", ({ probe }) => probe.longestStallSessionMs, 10),
    row("most CPU in one stall, session", ({ probe }) => probe.mostCpuInStallMs),
    alone(row("longest stall of an idle thread meanwhile", ({ idleMs }) => idleMs)),
  ];
  return variant.entry ? [row("all connected after", ({ connectedMs }) => connectedMs), ...rows] : rows;
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const variants = await loadVariants(options);
  const cases: { variant: Variant; home: BenchHome; samples: Sample[] }[] = [];
  const idle = startIdleBeat();
  try {
    const ours = variants.filter(({ id }) => id === "ours");
    const withSkills = ours.map((variant) => ({ ...variant, label: `${variant.label}, 500 skills` }));
    for (const variant of [...variants, ...withSkills]) {
      const home = await createBenchHome(variant, withSkills.includes(variant) ? WITH_SKILLS : SHAPE);
      cases.push({ variant, home, samples: [] });
      progress(`connect: ${variant.label} learns the tools`);
      await startOnce(variant, home, idle);
    }
    for (let index = 0; index < runs; index++) {
      progress(`connect: run ${index + 1} of ${runs}`);
      for (const { variant, home, samples } of cases) samples.push(await startOnce(variant, home, idle));
    }
  } finally {
    await idle.stop();
    for (const { home } of cases) await home.dispose();
  }
  return cases.flatMap(({ variant, samples }) => rowsOf(variant, samples, variants));
}

export const connect: Scenario = {
  name: "connect",
  description: "20 eager servers with 1,000 tools connecting while the real Pi starts, tools already known",
  run,
};
