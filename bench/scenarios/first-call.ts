/**
 * Owns: the first tool call of a session in the real Pi, compared with the second. If a client connects lazily, the
 * server is not connected before the first call. Also the first call over HTTP, in both eras of the protocol.
 * Must not: use slow servers; the stall scenario does.
 */
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { createHttpFirstCall } from "../support/first-call-http.ts";
import { type Prompted, startMeasured } from "../support/measured-pi.ts";
import type { Window } from "../support/probe-report.ts";
import { programAloneMs } from "../support/program-alone.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 5;
const SHAPE = { servers: 5, toolsPerServer: 50, lifecycle: "lazy" } as const;
const SERVER = "bench3";
/** Time from the start of Pi to the first prompt. All work of a start has ended by then. */
const SETTLED_MS = 2_000;
const BEYOND_TARGET_MS = 10;
/** A model takes longer from the tools that a search has found to the call of one. */
const THOUGHT_MS = 500;

interface Sample {
  findMs: number;
  firstMs: number;
  secondMs: number;
  /** The first call of another Pi, in which the model took `THOUGHT_MS`, without these. */
  thoughtMs: number;
  /** The server's program from its spawn to the answer of a first call, without any client. */
  aloneMs: number;
  /** The prompt that finds the tool and calls it. */
  first: Window;
  /** The prompt that only calls the tool. */
  second: Window;
}

/** Time from one request to the next: the tool calls between them, and Pi's own work around these calls. */
function betweenMs({ requests }: Prompted, from: number): number {
  const [start, end] = [requests[from], requests[from + 1]];
  return start && end ? end.arrivedAtMs - start.arrivedAtMs : Number.NaN;
}

function check({ results }: Prompted, text: string, label: string): void {
  const shown = results.at(-1) ?? "no result";
  if (!shown.includes(`"${text}"`)) throw new Error(`${label} answered the call with: ${shown}`);
}

async function measureThought(variant: Variant, home: BenchHome): Promise<number> {
  await home.reset({ cold: false });
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    await pi.untilAge(SETTLED_MS);
    const echo = variant.call(SERVER, [{ tool: "echo", args: { text: "thought" } }]);
    const called = await pi.prompt(variant.find(SERVER, "echo"), { ...echo, afterMs: THOUGHT_MS });
    check(called, "thought", variant.label);
    await pi.stop();
    return betweenMs(called, 1) - THOUGHT_MS;
  } finally {
    await pi.dispose();
  }
}

async function measureOnce(variant: Variant, home: BenchHome): Promise<Sample> {
  const thoughtMs = await measureThought(variant, home);
  await home.reset({ cold: false });
  const echo = (text: string) => variant.call(SERVER, [{ tool: "echo", args: { text } }]);
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    await pi.untilAge(SETTLED_MS);
    const aloneMs = await programAloneMs();
    await pi.mark("first begins");
    const first = await pi.prompt(variant.find(SERVER, "echo"), echo("first"));
    check(first, "first", variant.label);
    await pi.mark("first ends");
    const second = await pi.prompt(echo("second"));
    check(second, "second", variant.label);
    await pi.mark("second ends");
    const probe = await pi.stop();
    return {
      findMs: betweenMs(first, 0),
      firstMs: betweenMs(first, 1),
      secondMs: betweenMs(second, 0),
      thoughtMs,
      aloneMs,
      first: probe.between("first begins", "first ends"),
      second: probe.between("first ends", "second ends"),
    };
  } finally {
    await pi.dispose();
  }
}

function rowsOf({ id, label }: Variant, samples: readonly Sample[]): Row[] {
  const row = (metric: string, pick: (sample: Sample) => number): Row => ({
    case: label,
    metric,
    unit: "ms",
    values: samples.map(pick),
    ...(id === "ours" ? {} : { ours: "ours" }),
  });
  const alone = row("the server's program alone, until it has answered a call", ({ aloneMs }) => aloneMs);
  // The second call is Pi's own work around a call, and the way to the server and back.
  const beyond: Row = {
    ...row(
      "first call beyond that and a second call, the model takes 0.5 s",
      (one) => one.thoughtMs - one.secondMs - one.aloneMs,
    ),
    target: BEYOND_TARGET_MS,
  };
  return [
    row("find the tool", ({ findMs }) => findMs),
    row("first call, the model answers at once", ({ firstMs }) => firstMs),
    row("first call, the model takes 0.5 s", ({ thoughtMs }) => thoughtMs),
    row("second call", ({ secondMs }) => secondMs),
    ...(id === "ours" ? [alone, beyond] : []),
    row("main-thread CPU, find and first call", ({ first }) => first.cpuMs),
    row("longest stall, find and first call", ({ first }) => first.longestStallMs),
    row("most CPU in one stall, find and first call", ({ first }) => first.mostCpuInStallMs),
    row("main-thread CPU, second call", ({ second }) => second.cpuMs),
    row("longest stall, second call", ({ second }) => second.longestStallMs),
  ];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const variants = (await loadVariants(options)).filter(({ id }) => id !== "none");
  const cases: { variant: Variant; home: BenchHome; samples: Sample[] }[] = [];
  const overHttp = await createHttpFirstCall(variants);
  try {
    for (const variant of variants) {
      const home = await createBenchHome(variant, SHAPE);
      cases.push({ variant, home, samples: [] });
      progress(`first-call: ${variant.label} learns the tools`);
      await measureOnce(variant, home);
    }
    progress("first-call: all learn the tools of the servers over HTTP");
    await overHttp.learn();
    for (let index = 0; index < runs; index++) {
      progress(`first-call: run ${index + 1} of ${runs}`);
      for (const { variant, home, samples } of cases) samples.push(await measureOnce(variant, home));
      await overHttp.measure();
    }
  } finally {
    for (const { home } of cases) await home.dispose();
    await overHttp.dispose();
  }
  return [...cases.flatMap(({ variant, samples }) => rowsOf(variant, samples)), ...overHttp.rows()];
}

export const firstCall: Scenario = {
  name: "first-call",
  description:
    "find a tool and call it, on a lazy server (the built-in MCP has connected it at start), tools known",
  run,
};
