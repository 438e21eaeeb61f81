/**
 * Owns: stalls of Pi's main thread during heavy work elsewhere: results of many megabytes, many results at once, a
 * server that starts slowly.
 * Must not: judge which part of a big result is shown, only that it is the right result.
 */
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { startIdleBeat } from "../support/idle-beat.ts";
import { measurePayload, type Sample } from "../support/measure-payload.ts";
import { BIG, FLOOD, type Payload, SMALL, TRICKLE } from "../support/payloads.ts";
import { alone, type Row, type Scenario, type ScenarioOptions } from "../support/scenario.ts";
import { callBesideSlowServer } from "../support/slow-server.ts";
import { loadVariants, PEER_TIMEOUT, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 3;
const SHAPE = { servers: 1, toolsPerServer: 20, lifecycle: "eager" } as const;
const SLOW_SERVER_MS = 6_000;

const CPU_TARGET_MS = 15;
const STALL_TARGET_MS = 10;
const HEAP_TARGET_MB = 30;
const DELIVERY_TARGET_MS = 400;
const DELIVERY_BYTES = 20 * 1024 ** 2;

type Pick = (sample: Sample) => number | undefined;

function rowsOf(variant: Variant, payload: Payload, samples: readonly Sample[]): Row[] {
  const isOurs = variant.id === "ours";
  const { baseline } = payload;
  const failure = samples.find((sample) => sample.failure !== undefined)?.failure;
  const row = (metric: string, unit: Row["unit"], pick: Pick, target?: number): Row => ({
    case: `${payload.name}, ${variant.label}`,
    metric,
    unit,
    values: samples.map(pick).filter((value) => value !== undefined),
    ...(baseline === undefined ? {} : { baseline: `${baseline.name}, ${variant.label}` }),
    ...(isOurs ? {} : { ours: `${payload.name}, ours` }),
    ...(isOurs && baseline !== undefined && target !== undefined ? { target } : {}),
  });
  const cpu = row("main-thread CPU", "ms", ({ cpuMs }) => cpuMs, payload.single ? CPU_TARGET_MS : undefined);
  const delivery = row("last byte to next request", "ms", ({ deliveryMs }) => deliveryMs);
  // The row's target applies to the value itself, not to the difference.
  delete delivery.baseline;
  const limit = isOurs && payload.bytes === DELIVERY_BYTES ? { target: DELIVERY_TARGET_MS } : {};
  return [
    failure === undefined ? cpu : { ...cpu, note: `not the result: ${failure}` },
    row("longest stall", "ms", ({ window }) => window.longestStallMs, STALL_TARGET_MS),
    row("most CPU in one stall", "ms", ({ window }) => window.mostCpuInStallMs),
    alone(row("longest stall of an idle thread meanwhile", "ms", ({ idleMs }) => idleMs)),
    row("growth of main's heap, peak", "MB", ({ window }) => window.heapGrowthMb, HEAP_TARGET_MB),
    row("whole prompt", "ms", ({ window }) => window.wallMs),
    ...(delivery.values.length === 0 || baseline === undefined ? [] : [{ ...delivery, ...limit }]),
  ];
}

function slowRow({ id, label }: Variant, outcomes: readonly (number | string)[]): Row {
  const failure = outcomes.find((outcome) => typeof outcome === "string");
  const name = (who: string): string => `another server takes ${SLOW_SERVER_MS / 1_000} s to start, ${who}`;
  return {
    case: name(label),
    metric: "first call, from Pi's start",
    unit: "ms",
    values: outcomes.filter((outcome) => typeof outcome === "number"),
    ...(id === "ours" ? {} : { ours: name("ours") }),
    ...(failure === undefined ? {} : { note: `not the result: ${failure}` }),
  };
}

interface Subject {
  variant: Variant;
  home: BenchHome;
  samples: Map<Payload, Sample[]>;
  slow: (number | string)[];
}

async function measureAll(
  subjects: readonly Subject[],
  { runs = DEFAULT_RUNS, progress }: ScenarioOptions,
): Promise<void> {
  const idle = startIdleBeat();
  try {
    for (let index = 0; index < runs; index++) {
      for (const payload of [...BIG, TRICKLE, FLOOD]) {
        progress(`stall: run ${index + 1} of ${runs}, ${payload.name}`);
        for (const { variant, home, samples } of subjects) {
          // A failed case does not run again, because it would fail again after a long wait.
          if (samples.get(payload)?.some(({ failure }) => failure !== undefined)) continue;
          for (const [one, sample] of await measurePayload({ variant, home, payload }, idle)) {
            samples.set(one, [...(samples.get(one) ?? []), sample]);
          }
        }
      }
    }
    for (const { variant, slow } of subjects) {
      progress(`stall: another server takes ${SLOW_SERVER_MS / 1_000} s, ${variant.label}`);
      slow.push(await callBesideSlowServer(variant, SLOW_SERVER_MS));
    }
  } finally {
    await idle.stop();
  }
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  // Bare Pi has no server to call.
  const variants = (await loadVariants(options)).filter(({ id }) => id !== "none");
  const subjects: Subject[] = [];
  try {
    for (const variant of variants) {
      const more = variant.id === "ours" ? {} : PEER_TIMEOUT;
      const home = await createBenchHome(variant, { ...SHAPE, more });
      subjects.push({ variant, home, samples: new Map(), slow: [] });
    }
    await measureAll(subjects, options);
  } finally {
    for (const { home } of subjects) await home.dispose();
  }
  return [
    ...[SMALL, ...BIG, TRICKLE, FLOOD].flatMap((payload) =>
      subjects.flatMap(({ variant, samples }) => rowsOf(variant, payload, samples.get(payload) ?? [])),
    ),
    ...subjects.map(({ variant, slow }) => slowRow(variant, slow)),
  ];
}

export const stall: Scenario = {
  name: "stall",
  description: "Pi's main thread while results are huge, beside the same prompt with small ones",
  run,
};
