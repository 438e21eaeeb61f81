/**
 * Owns: a run of `pi -p` that answers at once, as scripts, CI and subagents start it: the first request, and the end of
 * the process after the answer. The servers have not finished starting; what is known of them is the case's.
 * Must not: call a tool.
 */
import { startModel } from "../../test/support/model.ts";
import { startPrint } from "../../test/support/pi-run.ts";
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { epochMs, startMeasured } from "../support/measured-pi.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { type Lifecycle, loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 7;
/** From the start of Pi until a client has kept what it has learned of its servers. */
const LEARNT_MS = 3_000;

interface Kind {
  about: string;
  servers: number;
  lifecycle: Lifecycle;
  /** What earlier runs have left: compiled code, the tools of the servers with it, or nothing at all. */
  left: "code" | "tools" | "nothing";
  /** Wanted at most, over bare Pi. */
  requestMs: number;
  endMs: number;
}

const KINDS: readonly Kind[] = [
  { about: "1 server", servers: 1, lifecycle: "lazy", left: "code", requestMs: 50, endMs: 40 },
  { about: "20 servers", servers: 20, lifecycle: "lazy", left: "code", requestMs: 50, endMs: 40 },
  {
    about: "20 eager servers, known",
    servers: 20,
    lifecycle: "eager",
    left: "tools",
    requestMs: 15,
    endMs: 25,
  },
  {
    about: "20 servers, new home",
    servers: 20,
    lifecycle: "lazy",
    left: "nothing",
    requestMs: 50,
    endMs: 60,
  },
];

interface Sample {
  requestMs: number;
  endMs: number;
}

const homeOf = (variant: Variant, { servers, lifecycle }: Kind): Promise<BenchHome> =>
  createBenchHome(variant, { servers, toolsPerServer: 20, lifecycle });

/** One session in which all servers are listed. */
async function learn(variant: Variant, home: BenchHome): Promise<void> {
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    if (variant.entry) await home.allListed();
    await pi.untilAge(LEARNT_MS);
    await pi.stop();
  } finally {
    await pi.dispose();
  }
}

async function measureOnce({ extension }: Variant, { home }: BenchHome): Promise<Sample> {
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

async function measureInNewHome(variant: Variant, kind: Kind): Promise<Sample> {
  const home = await homeOf(variant, kind);
  try {
    return await measureOnce(variant, home);
  } finally {
    await home.dispose();
  }
}

function rowsOf({ id, label }: Variant, kind: Kind, samples: readonly Sample[], bare: boolean): Row[] {
  const { about, requestMs, endMs } = kind;
  const row = (metric: string, target: number, pick: (sample: Sample) => number): Row => ({
    case: `${label}, ${about}`,
    metric,
    unit: "ms",
    values: samples.map(pick),
    ...(bare && id !== "none" ? { baseline: `bare Pi, ${about}` } : {}),
    ...(id === "ours" ? { target } : id === "none" ? {} : { ours: `ours, ${about}` }),
  });
  return [
    row("first request", requestMs, (sample) => sample.requestMs),
    row("end of the process after the answer", endMs, (sample) => sample.endMs),
  ];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const variants = await loadVariants(options);
  const bare = variants.some(({ id }) => id === "none");
  const rows: Row[] = [];
  for (const kind of KINDS) {
    const { about, left } = kind;
    const cases: { variant: Variant; home: BenchHome | undefined; samples: Sample[] }[] = [];
    try {
      for (const variant of variants) {
        const home = left === "nothing" ? undefined : await homeOf(variant, kind);
        cases.push({ variant, home, samples: [] });
        if (home && left === "tools") await learn(variant, home);
      }
      for (let index = 0; index <= runs; index++) {
        progress(`short-run: ${about}, run ${index} of ${runs}`);
        for (const { variant, home, samples } of cases) {
          await home?.reset({ cold: left === "code" });
          const sample = await (home ? measureOnce(variant, home) : measureInNewHome(variant, kind));
          // The first run fills the compile caches of its home, and the system's of all files.
          if (index > 0) samples.push(sample);
        }
      }
    } finally {
      for (const { home } of cases) await home?.dispose();
    }
    rows.push(...cases.flatMap(({ variant, samples }) => rowsOf(variant, kind, samples, bare)));
  }
  return rows;
}

export const shortRun: Scenario = {
  name: "short-run",
  description: "pi -p that is answered at once: first request, end of the process",
  run,
};
