/**
 * Owns: memory of Pi's process with five connected servers, and of its main thread while results of 1 to 60 MB
 * pass through.
 * Must not: count the servers' own processes.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { promptPayload, warmUp } from "../support/measure-payload.ts";
import { type MeasuredPi, startMeasured } from "../support/measured-pi.ts";
import { BIG, type Payload, SHOWN } from "../support/payloads.ts";
import type { Memory, ProbeReport, Window } from "../support/probe-report.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, PEER_TIMEOUT, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 2;
const SHAPE = { servers: 5, toolsPerServer: 50, lifecycle: "eager" } as const;
/** Time from Pi's start until idle worker threads have ended and V8 has released their memory, 8 s later. */
const SETTLED_MS = 18_000;
const PROCESS_TARGET_MB = 40;
const SERIES_TARGET_MB = 30;
/** All memory must be released; the result of a full garbage collection varies by about this much. */
const LEFT_TARGET_MB = 2;
const RESTED_MS = 10_000;
const RESTED_TARGET_MB = 60;

interface Series {
  window: Window;
  /** Growth after garbage collections, minus the growth after as many results of 48 KB: Pi keeps the conversation. */
  leftHeapMb: number;
  leftRssMb: number;
  /** The same, `RESTED_MS` after the series. */
  restedRssMb: number;
  failures: string[];
}

interface Sample {
  idle: Memory;
  /** Undefined for bare Pi, which has no tool to call. */
  series: Series | undefined;
}

const MARKS = ["small series", "series", "end", "rested"] as const;

async function promptSeries(
  pi: MeasuredPi,
  { variant, home }: { variant: Variant; home: BenchHome },
): Promise<string[]> {
  const failures: string[] = [];
  const small = BIG.map((_, index): Payload => ({ ...SHOWN, name: `small ${index}`, id: `small-${index}` }));
  await warmUp(pi, variant);
  for (const [index, payloads] of [small, BIG].entries()) {
    await pi.mark(MARKS[index] ?? "", { gc: true });
    for (const payload of payloads) {
      const { failure } = await promptPayload(pi, { variant, home, payload });
      if (failure !== undefined) failures.push(payload.name);
    }
  }
  await pi.mark("end", { gc: true });
  await sleep(RESTED_MS);
  await pi.mark("rested", { gc: true });
  return failures;
}

function toSeries(probe: ProbeReport, failures: string[]): Series {
  const [small, big, end, rested] = MARKS.map((mark) => probe.at(mark)) as [Memory, Memory, Memory, Memory];
  const leftOf = ({ rssMb }: Memory): number => rssMb - big.rssMb - (big.rssMb - small.rssMb);
  return {
    window: probe.between("series", "end"),
    leftHeapMb: end.heapMb - big.heapMb - (big.heapMb - small.heapMb),
    leftRssMb: leftOf(end),
    restedRssMb: leftOf(rested),
    failures,
  };
}

async function measureOnce(variant: Variant): Promise<Sample> {
  const more = variant.id === "ours" ? {} : PEER_TIMEOUT;
  const home = await createBenchHome(variant, { ...SHAPE, more });
  try {
    const pi = await startMeasured(variant, home);
    try {
      await pi.ready();
      if (variant.entry) await home.allListed();
      await pi.untilAge(SETTLED_MS);
      await pi.mark("idle", { gc: true });
      const failures = variant.entry && (await promptSeries(pi, { variant, home }));
      const probe = await pi.stop();
      return { idle: probe.at("idle"), series: failures && toSeries(probe, failures) };
    } finally {
      await pi.dispose();
    }
  } finally {
    await home.dispose();
  }
}

function rowsOf({ id, label }: Variant, samples: readonly Sample[], compare: boolean): Row[] {
  const isOurs = id === "ours";
  const base = { case: label, unit: "MB", ...(isOurs ? {} : { ours: "ours" }) } as const;
  const idle = (metric: string, pick: (memory: Memory) => number, target?: number): Row => ({
    ...base,
    metric,
    values: samples.map((sample) => pick(sample.idle)),
    ...(compare && id !== "none" ? { baseline: "bare Pi" } : {}),
    ...(compare && isOurs && target !== undefined ? { target } : {}),
  });
  const failures = samples.flatMap(({ series }) => series?.failures ?? []);
  const note =
    failures.length === 0 ? {} : { note: `without ${[...new Set(failures)].join(", ")}, which failed` };
  const series = (metric: string, pick: (series: Series) => number, target?: number): Row => ({
    ...base,
    ...note,
    metric,
    values: samples.flatMap((sample) => (sample.series ? [pick(sample.series)] : [])),
    ...(isOurs && target !== undefined ? { target } : {}),
  });
  const rows = [
    idle("process, 5 servers connected", ({ rssMb }) => rssMb, PROCESS_TARGET_MB),
    idle("heap of main, 5 servers connected", ({ heapMb }) => heapMb),
  ];
  if (id === "none") return rows;
  return [
    ...rows,
    series(
      "growth of main's heap in the series, peak",
      ({ window }) => window.heapGrowthMb,
      SERIES_TARGET_MB,
    ),
    series("growth of main's heap, left after it", ({ leftHeapMb }) => leftHeapMb, LEFT_TARGET_MB),
    series("growth of the process in the series, peak", ({ window }) => window.rssGrowthMb),
    series("growth of the process, left after it", ({ leftRssMb }) => leftRssMb),
    series(
      `growth of the process, ${RESTED_MS / 1_000} s after it`,
      ({ restedRssMb }) => restedRssMb,
      RESTED_TARGET_MB,
    ),
  ];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const samples = new Map((await loadVariants(options)).map((variant) => [variant, [] as Sample[]]));
  for (let index = 0; index < runs; index++) {
    for (const [variant, list] of samples) {
      progress(`memory: run ${index + 1} of ${runs}, ${variant.label}`);
      list.push(await measureOnce(variant));
    }
  }
  const compare = options.vs.includes("none");
  return [...samples].flatMap(([variant, list]) => rowsOf(variant, list, compare));
}

export const memory: Scenario = {
  name: "memory",
  description: `5 connected servers, then results one after the other: ${BIG.map(({ name }) => name).join(", ")}`,
  run,
};
