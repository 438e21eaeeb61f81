/**
 * Owns: what a session pays for a gateway's tools, as a team puts them behind one address: 30 servers with 500 to 4,000 tools
 * behind a real gateway from npm, and one to ten sessions at once beside sessions with those servers of their own.
 * Must not: measure the gateway's own speed beyond what a session waits for.
 */
import { join } from "node:path";
import { type Gateway, startGateway } from "../../test/support/gateway.ts";
import { startModel, toolResultTexts } from "../../test/support/model.ts";
import { createHome, type PiHome, type RpcSession, startRpc } from "../../test/support/pi-run.ts";
import { BENCH_SERVER } from "../support/bench-home.ts";
import { epochMs, startMeasured } from "../support/measured-pi.ts";
import { pssMb, settledPids } from "../support/process-memory.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { learnt } from "../support/snapshots.ts";
import { syntheticTools } from "../support/synthetic-tools.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 3;
const SERVERS = 30;
const SIZES = [500, 1_000, 2_000, 4_000];
const SESSIONS_TOOLS = 2_000;
const SESSIONS = 10;
/** Sessions with 30 servers of their own, each of which is a process: more say nothing new and fill the machine. */
const OWN_SESSIONS = 3;
/** Each server of the benches has two tools of its own. */
const OWN_TOOLS = 2;
const WINDOW_MS = 2_000;
const PROMPT_TIMEOUT_MS = 60_000;
const QUIET = { quietMs: 3_000, longestMs: 60_000 };
const BARE = "bare Pi";
/** The tool `echo` of the gateway's third server. */
const ECHO = { server: "team", tool: "bench3__echo" };

type Entries = Record<string, Record<string, unknown>>;

/** Entries of 30 servers with about this many tools together, and how many these are exactly. */
async function serversOf(home: PiHome, tools: number): Promise<{ entries: Entries; tools: number }> {
  const each = Math.max(Math.round(tools / SERVERS) - OWN_TOOLS, 1);
  const entries: Entries = {};
  for (let at = 1; at <= SERVERS; at++) {
    const file = await home.writeFile(join("..", "tools", `bench${at}.json`), syntheticTools(each, at));
    entries[`bench${at}`] = { command: process.execPath, args: [BENCH_SERVER], env: { TOOLS_FILE: file } };
  }
  return { entries, tools: SERVERS * (each + OWN_TOOLS) };
}

interface Team {
  home: PiHome;
  gateway: Gateway;
  entries: Entries;
  tools: number;
  dispose(): Promise<void>;
}

/** A home whose only server is a gateway with that many tools. */
async function openTeam(tools: number): Promise<Team> {
  const home = await createHome({});
  const behind = await serversOf(home, tools);
  const gateway = await startGateway(join(home.dir, "gateway"), behind.entries);
  await home.writeMcp({ mcpServers: { [ECHO.server]: { url: gateway.url, lifecycle: "eager" } } });
  return {
    home,
    gateway,
    ...behind,
    dispose: async () => {
      await gateway.kill();
      await home.dispose();
    },
  };
}

interface Sample {
  unknownMs: number;
  changedMs: number;
  backMs: number;
  firstRequestMs: number;
  bareMs: number;
  cpuMs: number;
  bareCpuMs: number;
  rssMb: number;
  bareRssMb: number;
  findMs: number;
  callMs: number;
  snapshotKb: number;
}

async function startOf(variant: Pick<Variant, "extension">, home: PiHome) {
  const pi = await startMeasured(variant, { home });
  const { requests } = await pi.prompt();
  await pi.untilAge(WINDOW_MS);
  const { cpuMs, rssMb } = await pi.report();
  return { pi, firstRequestMs: (requests[0]?.arrivedAtMs ?? Number.NaN) - pi.startedAtMs, cpuMs, rssMb };
}

async function sampleOf(team: Team, ours: Variant, bare: Variant, isFirst: boolean): Promise<Sample> {
  const { home, gateway, tools, entries } = team;
  let unknownMs = Number.NaN;
  let snapshot: Uint8Array = new Uint8Array();
  if (isFirst) {
    const learning = await startMeasured(ours, { home });
    snapshot = await learnt(home, tools);
    unknownMs = epochMs() - learning.startedAtMs;
    await learning.dispose();
  }
  const without = await startOf(bare, home);
  await without.pi.dispose();
  const { pi, ...start } = await startOf(ours, home);
  try {
    const echo = ours.call(ECHO.server, [{ tool: ECHO.tool, args: { text: "here" } }]);
    const { requests } = await pi.prompt(ours.find(ECHO.server, ECHO.tool), echo);
    const at = requests.map(({ arrivedAtMs }) => arrivedAtMs);
    const between = (from: number): number => (at[from + 1] ?? Number.NaN) - (at[from] ?? Number.NaN);
    // A server less, as its administrator edits the gateway's file, until the session's snapshot has its tools no more.
    const { bench30: _left, ...others } = entries;
    const editedMs = epochMs();
    await gateway.write(others);
    await learnt(home, tools - tools / SERVERS);
    const changedMs = epochMs() - editedMs;
    await gateway.write(entries);
    await learnt(home, tools);
    await gateway.kill();
    await pi.prompt(echo);
    await gateway.start();
    const upMs = epochMs();
    let results: readonly string[] = [];
    while (!(results.at(-1) ?? "").includes('"here"')) ({ results } = await pi.prompt(echo));
    return {
      unknownMs,
      changedMs,
      backMs: epochMs() - upMs,
      firstRequestMs: start.firstRequestMs,
      bareMs: without.firstRequestMs,
      cpuMs: start.cpuMs,
      bareCpuMs: without.cpuMs,
      rssMb: start.rssMb,
      bareRssMb: without.rssMb,
      findMs: between(0),
      callMs: between(1),
      snapshotKb: isFirst ? snapshot.length / 1024 : Number.NaN,
    };
  } finally {
    await pi.dispose();
  }
}

function sizeRows(tools: number, samples: readonly Sample[], compare: boolean): Row[] {
  const shown = `${tools.toLocaleString("en-US")} tools behind a gateway`;
  const row = (metric: string, unit: Row["unit"], pick: (sample: Sample) => number): Row => ({
    case: shown,
    metric,
    unit,
    values: samples.map(pick).filter((value) => !Number.isNaN(value)),
  });
  const beside = (
    metric: string,
    unit: Row["unit"],
    pick: (s: Sample) => number,
    bare: (s: Sample) => number,
  ) =>
    compare
      ? [
          { ...row(metric, unit, bare), case: `${BARE}, beside ${shown}` },
          { ...row(metric, unit, pick), baseline: `${BARE}, beside ${shown}` },
        ]
      : [row(metric, unit, pick)];
  return [
    row("nothing known: from Pi's start until all tools are known and stored", "ms", (one) => one.unknownMs),
    row("size of the snapshot", "KB", (one) => one.snapshotKb),
    ...beside(
      "known: first request after",
      "ms",
      (one) => one.firstRequestMs,
      (one) => one.bareMs,
    ),
    ...beside(
      "known: main-thread CPU, first 2 s",
      "ms",
      (one) => one.cpuMs,
      (one) => one.bareCpuMs,
    ),
    ...beside(
      "known: memory of the process at 2 s",
      "MB",
      (one) => one.rssMb,
      (one) => one.bareRssMb,
    ),
    row("find a tool", "ms", (one) => one.findMs),
    row("first call through the gateway", "ms", (one) => one.callMs),
    row(
      "a server leaves the gateway: until the session's tools are stored without it",
      "ms",
      (one) => one.changedMs,
    ),
    row("the gateway is up again: until a call of the same session works", "ms", (one) => one.backMs),
  ];
}

interface Together {
  memoryMb: number;
  processes: number;
  callMs: number;
}

/** Sessions one after the other, each beside all earlier ones, with one call each. */
async function together(home: PiHome, ours: Variant, call: { server: string; tool: string }, count: number) {
  const text = "together";
  const turn = ours.call(call.server, [{ tool: call.tool, args: { text } }]);
  const sessions: RpcSession[] = [];
  const figures: Together[] = [];
  const closing: (() => Promise<void>)[] = [];
  try {
    for (let at = 0; at < count; at++) {
      let asked = false;
      const model = await startModel(() => {
        asked = !asked;
        return asked ? turn : undefined;
      });
      closing.push(() => model.close());
      const session = await startRpc({ home, model, extensions: [ours.extension] });
      sessions.push(session);
      await session.ready();
      const fromMs = epochMs();
      for (;;) {
        const since = model.requests.length;
        await session.prompt("go on", PROMPT_TIMEOUT_MS);
        const answered = model.requests
          .slice(since)
          .find((one) => toolResultTexts(one).at(-1)?.includes(text));
        if (!answered) continue;
        const pids = await settledPids(home.dir, QUIET);
        figures.push({
          callMs: answered.arrivedAtMs - fromMs,
          memoryMb: await pssMb(pids),
          processes: pids.length,
        });
        break;
      }
    }
    return figures;
  } finally {
    for (const session of sessions) await session.stop();
    for (const close of closing) await close();
  }
}

function togetherRows(label: string, figures: readonly Together[]): Row[] {
  const shown = (at: number): string => `${at + 1} ${at === 0 ? "session" : "sessions"}`;
  const row = (metric: string, unit: Row["unit"], value: number): Row => ({
    case: label,
    metric,
    unit,
    values: [value],
  });
  return figures.flatMap(({ memoryMb, processes, callMs }, at) => [
    row(`memory of ${shown(at)}, their servers and the gateway`, "MB", memoryMb),
    row(`processes of ${shown(at)}`, "processes", processes),
    row(`first call of session ${at + 1}, from its prompt`, "ms", callMs),
  ]);
}

/** Tools are known from an earlier session, and `echo` is declared, so that no search is measured. */
async function sessionRows(
  ours: Variant,
  { sessions = SESSIONS, progress }: ScenarioOptions,
): Promise<Row[]> {
  const rows: Row[] = [];
  const team = await openTeam(SESSIONS_TOOLS);
  try {
    const learn = async (tools: number): Promise<void> => {
      const pi = await startMeasured(ours, { home: team.home });
      await learnt(team.home, tools);
      await pi.dispose();
    };
    const url = team.gateway.url;
    const entry = { url, lifecycle: "eager", directTools: [ECHO.tool] };
    await team.home.writeMcp({ mcpServers: { [ECHO.server]: entry } });
    await learn(team.tools);
    progress(`gateway: ${sessions} sessions`);
    rows.push(...togetherRows("sessions at one gateway", await together(team.home, ours, ECHO, sessions)));
    await team.gateway.kill();
    const own = Object.entries(team.entries).map(([name, one]) => [
      name,
      { ...one, lifecycle: "eager", ...(name === "bench3" ? { directTools: ["echo"] } : {}) },
    ]);
    await team.home.writeMcp({ mcpServers: Object.fromEntries(own) });
    await learn(team.tools);
    const few = Math.min(sessions, OWN_SESSIONS);
    progress(`gateway: ${few} sessions with servers of their own`);
    const call = { server: "bench3", tool: "echo" };
    rows.push(
      ...togetherRows("sessions with those servers of their own", await together(team.home, ours, call, few)),
    );
    return rows;
  } finally {
    await team.dispose();
  }
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { small, runs = small ? 1 : DEFAULT_RUNS, progress } = options;
  const variants = await loadVariants({ ...options, vs: ["none"] });
  const [ours, bare] = ["ours", "none"].map((id) => variants.find((one) => one.id === id)) as [
    Variant,
    Variant,
  ];
  const rows: Row[] = [];
  for (const size of small ? SIZES.slice(0, 1) : SIZES) {
    const team = await openTeam(size);
    try {
      const samples: Sample[] = [];
      for (let index = 0; index < runs; index++) {
        progress(`gateway: ${team.tools} tools, run ${index + 1} of ${runs}`);
        samples.push(await sampleOf(team, ours, bare, index === 0));
      }
      rows.push(...sizeRows(team.tools, samples, options.vs.includes("none")));
    } finally {
      await team.dispose();
    }
  }
  return [...rows, ...(await sessionRows(ours, small ? { ...options, sessions: 2 } : options))];
}

export const gateway: Scenario = {
  name: "gateway",
  description: `30 servers with ${SIZES[0]} to 4,000 tools behind a gateway from npm, and 1 to ${SESSIONS} sessions at it (--small: one size, two sessions)`,
  run,
};
