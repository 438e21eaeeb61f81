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
const EARLY_MS = 2_000;
/** Time from Pi's start until idle worker threads have ended and V8 has released their memory, 8 s later. */
const SETTLED_MS = 20_000;
const EARLY_TARGET_MB = 45;
const PROCESS_TARGET_MB = 25;
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

interface Start {
  /** `EARLY_MS` after the start; without a collection, which would hide what the start leaves behind. */
  early: Memory;
  /** `SETTLED_MS` after it. */
  idle: Memory;
}

interface Sample extends Start {
  /** A start with lazy servers whose tools are known. Only ours. */
  lazy: Start | undefined;
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

const startOf = (probe: ProbeReport): Start => ({ early: probe.at("early"), idle: probe.at("idle") });

async function measureLazy(variant: Variant): Promise<Start> {
  const home = await createBenchHome(variant, { ...SHAPE, lifecycle: "lazy" });
  try {
    const learning = await startMeasured(variant, home);
    await home.allListed();
    await learning.untilAge(EARLY_MS);
    await learning.stop();
    const pi = await startMeasured(variant, home);
    try {
      await pi.ready();
      await pi.untilAge(EARLY_MS);
      await pi.mark("early");
      await pi.untilAge(SETTLED_MS);
      await pi.mark("idle", { gc: true });
      return startOf(await pi.stop());
    } finally {
      await pi.dispose();
    }
  } finally {
    await home.dispose();
  }
}

async function measureOnce(variant: Variant): Promise<Sample> {
  const lazy = variant.id === "ours" ? await measureLazy(variant) : undefined;
  const more = variant.id === "ours" ? {} : PEER_TIMEOUT;
  const home = await createBenchHome(variant, { ...SHAPE, more });
  try {
    const pi = await startMeasured(variant, home);
    try {
      await pi.ready();
      await pi.untilAge(EARLY_MS);
      await pi.mark("early");
      if (variant.entry) await home.allListed();
      await pi.untilAge(SETTLED_MS);
      await pi.mark("idle", { gc: true });
      const failures = variant.entry && (await promptSeries(pi, { variant, home }));
      const probe = await pi.stop();
      return { ...startOf(probe), lazy, series: failures && toSeries(probe, failures) };
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
  const held = (
    metric: string,
    pick: (start: Start) => number,
    { target, of = samples, name = label }: { target?: number; of?: readonly Start[]; name?: string } = {},
  ): Row => ({
    ...base,
    case: name,
    metric,
    values: of.map(pick),
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
  const atStart = (of: readonly Start[], name: string): Row[] => [
    held(`process, ${EARLY_MS / 1_000} s after the start`, ({ early }) => early.rssMb, {
      of,
      name,
      target: EARLY_TARGET_MB,
    }),
    held(`process, ${SETTLED_MS / 1_000} s after the start`, ({ idle }) => idle.rssMb, {
      of,
      name,
      target: PROCESS_TARGET_MB,
    }),
  ];
  const lazy = samples.flatMap((sample) => sample.lazy ?? []);
  const rows = [
    ...atStart(samples, label),
    ...(isOurs ? atStart(lazy, `${label}, lazy, tools known`) : []),
    held(`heap of main, ${SETTLED_MS / 1_000} s after the start`, ({ idle }) => idle.heapMb),
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
