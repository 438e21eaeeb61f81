/**
 * Owns: a run of `pi -p` that answers at once, as scripts, CI and subagents start it: the first request, and the end of
 * the process after the answer. Nothing is known of the servers before it, and they have not finished starting.
 * Must not: call a tool.
 */
import { startModel } from "../../test/support/model.ts";
import { startPrint } from "../../test/support/pi-run.ts";
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { epochMs } from "../support/measured-pi.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 7;
const SERVERS = [1, 20];
const EXTRA_END_MS = 40;
const EXTRA_REQUEST_MS = 50;

interface Sample {
  requestMs: number;
  endMs: number;
}

async function measureOnce({ extension }: Variant, { home, reset }: BenchHome): Promise<Sample> {
  await reset({ cold: true });
  let answeredAtMs = Number.NaN;
  const model = await startModel(() => {
    answeredAtMs = epochMs();
    return { text: "done" };
  });
  try {
    const run = await startPrint({ home, model, extensions: [extension], prompt: "go on" });
    const { code } = await run.done;
    const endedAtMs = epochMs();
    const arrivedAtMs = model.requests[0]?.arrivedAtMs ?? Number.NaN;
    if (code !== 0) throw new Error(`Pi ended with exit code ${code}`);
    return { requestMs: arrivedAtMs - run.startedAtMs, endMs: endedAtMs - answeredAtMs };
  } finally {
    await model.close();
  }
}

function rowsOf({ id, label }: Variant, servers: number, samples: readonly Sample[], bare: boolean): Row[] {
  const about = (count: number): string => `${count} ${count === 1 ? "server" : "servers"}`;
  const row = (metric: string, target: number, pick: (sample: Sample) => number): Row => ({
    case: `${label}, ${about(servers)}`,
    metric,
    unit: "ms",
    values: samples.map(pick),
    ...(bare && id !== "none" ? { baseline: `bare Pi, ${about(servers)}` } : {}),
    ...(id === "ours" ? { target } : id === "none" ? {} : { ours: `ours, ${about(servers)}` }),
  });
  return [
    row("first request", EXTRA_REQUEST_MS, ({ requestMs }) => requestMs),
    row("end of the process after the answer", EXTRA_END_MS, ({ endMs }) => endMs),
  ];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const variants = await loadVariants(options);
  const rows: Row[] = [];
  for (const servers of SERVERS) {
    const cases: { variant: Variant; home: BenchHome; samples: Sample[] }[] = [];
    try {
      for (const variant of variants) {
        const home = await createBenchHome(variant, { servers, toolsPerServer: 20, lifecycle: "lazy" });
        cases.push({ variant, home, samples: [] });
      }
      for (let index = 0; index <= runs; index++) {
        progress(`short-run: ${servers} servers, run ${index} of ${runs}`);
        for (const { variant, home, samples } of cases) {
          const sample = await measureOnce(variant, home);
          // The first run fills the compile caches.
          if (index > 0) samples.push(sample);
        }
      }
    } finally {
      for (const { home } of cases) await home.dispose();
    }
    const bare = cases.some(({ variant }) => variant.id === "none");
    rows.push(...cases.flatMap(({ variant, samples }) => rowsOf(variant, servers, samples, bare)));
  }
  return rows;
}

export const shortRun: Scenario = {
  name: "short-run",
  description: "pi -p that answers before its servers are known: first request, end of the process",
  run,
};
