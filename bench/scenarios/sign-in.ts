/**
 * Owns: what a stored sign-in costs the real Pi with this extension: the same remote server with and without one.
 * Must not: sign in or renew; the token is good for longer than the bench runs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ModelTurn } from "../../test/support/model.ts";
import { createHome, type PiHome } from "../../test/support/pi-run.ts";
import { type ProtectedServer, startProtectedServer } from "../../test/support/protected-server.ts";
import { storeSignIn } from "../../test/support/stored-sign-in.ts";
import { packedExtension } from "../support/build.ts";
import { epochMs, type Prompted, startMeasured } from "../support/measured-pi.ts";
import type { ProbeReport, Window } from "../support/probe-report.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";

const DEFAULT_RUNS = 9;
/** Every case is watched for this time, or longer if its server is not connected by then. */
const WINDOW_MS = 4_000;
const AFTER_LIST_MS = 500;
const LIST_TIMEOUT_MS = 30_000;
const POLL_MS = 20;
const SERVER = "remote";
const TOKEN = "access-of-the-benches";

type Lifecycle = "eager" | "lazy";

interface Case {
  name: string;
  lifecycle: Lifecycle;
  hasToken: boolean;
  home: PiHome;
  server: ProtectedServer;
  /** When the server got each request, in milliseconds since the epoch. */
  arrivedAtMs: number[];
  samples: Sample[];
}

interface Sample {
  /** From the start of Pi until the server got the request for its tools; only for an eager server. */
  listedMs: number | undefined;
  start: ProbeReport;
  firstMs: number;
  secondMs: number;
  /** The prompt that finds the tool and calls it. */
  first: Window;
}

const nameOf = (lifecycle: Lifecycle, hasToken: boolean): string =>
  `${lifecycle}, ${hasToken ? "stored sign-in" : "no sign-in"}`;

async function createCase(lifecycle: Lifecycle, hasToken: boolean): Promise<Case> {
  const arrivedAtMs: number[] = [];
  const wanted = hasToken ? TOKEN : undefined;
  const server = await startProtectedServer({
    issuers: [],
    check: (token) => {
      arrivedAtMs.push(epochMs());
      return token === wanted ? [] : undefined;
    },
  });
  const home = await createHome({ mcp: { mcpServers: { [SERVER]: { url: server.url, lifecycle } } } });
  if (hasToken) await storeSignIn({ agentDir: home.agentDir, server: SERVER, url: server.url, token: TOKEN });
  return { name: nameOf(lifecycle, hasToken), lifecycle, hasToken, home, server, arrivedAtMs, samples: [] };
}

/** Waits for a `tools/list` from request `since` on. Every request to the endpoint is checked once, in order. */
async function listedAtMs({ server, arrivedAtMs }: Case, since: number): Promise<number> {
  const deadlineMs = performance.now() + LIST_TIMEOUT_MS;
  for (;;) {
    const asked = server.requests.filter(({ path }) => path === new URL(server.url).pathname);
    const found = arrivedAtMs[asked.findIndex(({ body }, i) => i >= since && body.includes('"tools/list"'))];
    if (found !== undefined) return found;
    if (performance.now() > deadlineMs) throw new Error("the server was not asked for its tools");
    await sleep(POLL_MS);
  }
}

/** Time from one request of the model to the next: the tool call between them, and Pi's own work around it. */
function betweenMs({ requests }: Prompted, from: number): number {
  const [start, end] = [requests[from], requests[from + 1]];
  return start && end ? end.arrivedAtMs - start.arrivedAtMs : Number.NaN;
}

const FIND: ModelTurn = {
  toolCalls: [{ name: "ToolSearch", args: { query: `select:${SERVER}__echo` } }],
};
const echo = (text: string): ModelTurn => ({
  toolCalls: [{ name: `${SERVER}__echo`, args: { text } }],
});

function check({ results }: Prompted, text: string): void {
  const shown = results.at(-1) ?? "no result";
  if (shown !== JSON.stringify({ text })) throw new Error(`the call was answered with: ${shown}`);
}

async function measureOnce(one: Case, extension: string): Promise<Sample> {
  const since = one.arrivedAtMs.length;
  const pi = await startMeasured({ extension }, one);
  try {
    await pi.ready();
    const listedMs = one.lifecycle === "eager" ? (await listedAtMs(one, since)) - pi.startedAtMs : undefined;
    await pi.untilAge(Math.max(WINDOW_MS, (listedMs ?? 0) + AFTER_LIST_MS));
    const start = await pi.report();
    await pi.mark("first begins");
    const first = await pi.prompt(FIND, echo("first"));
    check(first, "first");
    await pi.mark("first ends");
    const second = await pi.prompt(echo("second"));
    check(second, "second");
    const probe = await pi.stop();
    return {
      listedMs,
      start,
      firstMs: betweenMs(first, 1),
      secondMs: betweenMs(second, 0),
      first: probe.between("first begins", "first ends"),
    };
  } finally {
    await pi.dispose();
  }
}

function rowsOf({ name, lifecycle, hasToken, samples }: Case): Row[] {
  const row = (metric: string, pick: (sample: Sample) => number | undefined): Row => ({
    case: name,
    metric,
    unit: "ms",
    values: samples.map(pick).filter((value) => value !== undefined),
    ...(hasToken ? { baseline: nameOf(lifecycle, false) } : {}),
  });
  const ofStart = [
    row("main-thread CPU, start", ({ start }) => start.cpuMs),
    row("CPU of all threads, start", ({ start }) => start.processCpuMs),
  ];
  const ofCall = [
    row("first call", ({ firstMs }) => firstMs),
    row("second call", ({ secondMs }) => secondMs),
    row("main-thread CPU, find and first call", ({ first }) => first.cpuMs),
    row("CPU of all threads, find and first call", ({ first }) => first.processCpuMs),
  ];
  const connects =
    lifecycle === "eager" ? [row("asked for its tools after", ({ listedMs }) => listedMs)] : [];
  return [...connects, ...ofStart, ...ofCall];
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const { entry } = await packedExtension();
  const cases: Case[] = [];
  try {
    for (const lifecycle of ["eager", "lazy"] as const) {
      for (const hasToken of [false, true]) cases.push(await createCase(lifecycle, hasToken));
    }
    for (const one of cases) {
      progress(`sign-in: ${one.name} learns the tools`);
      await measureOnce(one, entry);
    }
    for (let index = 0; index < runs; index++) {
      progress(`sign-in: run ${index + 1} of ${runs}`);
      // Neither case of a pair always follows the other.
      const turns = index % 2 === 0 ? cases : cases.toReversed();
      for (const one of turns) one.samples.push(await measureOnce(one, entry));
    }
  } finally {
    for (const { home, server } of cases) {
      await home.dispose();
      await server.close();
    }
  }
  return cases.flatMap(rowsOf);
}

export const signIn: Scenario = {
  name: "sign-in",
  description: "one remote server with one known tool: a stored sign-in beside none",
  run,
};
