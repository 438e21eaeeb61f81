/**
 * Owns: the time until an edit of mcp.json takes effect while the real Pi runs with 20 servers, and the cost of the
 * edit for Pi's main thread.
 * Must not: define the edits; bench/support/edits.ts does.
 *
 * "Applied" is the time from before the write of the file until the notice of the effect reaches the user. After each
 * notice the model checks that the notice is true; a false notice ends the bench. The check is Pi's own work, so the
 * stalls do not include it.
 */
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import {
  EDITS_OF_A_KIND,
  type Edit,
  type Entries,
  KINDS,
  type Kind,
  makeEdits,
  SERVERS,
} from "../support/edits.ts";
import { type IdleBeat, longestWithin, startIdleBeat } from "../support/idle-beat.ts";
import { epochMs, type MeasuredPi, startMeasured } from "../support/measured-pi.ts";
import { ownStartMs } from "../support/own-start.ts";
import { alone, type Row, type Scenario, type ScenarioOptions } from "../support/scenario.ts";
import { median } from "../support/stats.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 3;
/** The home has 30 servers. Ten of them are not configured at first; edits add them later. */
const SHAPE = { servers: SERVERS + EDITS_OF_A_KIND, toolsPerServer: 50, lifecycle: "eager" } as const;
/** Number of edits of each kind that follow a long pause, in which the client's idle threads end. */
const QUIET_ROUNDS = 3;
const QUIET_MS = 6_500;
const PAUSE_MS = 300;
/** Main is watched for this time after the model's check, because work may follow. */
const AFTER_MS = 200;
/** Bare Pi has no edit to apply; it is watched for this time instead. */
const BARE_MS = 400;
const PATIENCE_MS = 30_000;
const POLL_MS = 5;
const APPLIED_MS = 300;
const STALL_MS = 10;

interface Applied {
  kind: Kind;
  quiet: boolean;
  /** Milliseconds until the notice. */
  ms: number;
  /** Milliseconds until the old process has ended or the new one has sent its tools. */
  serverMs: number | undefined;
}

interface Sample {
  ownStartMs: number;
  applied: Applied[];
  longestStallMs: number;
  mostCpuInStallMs: number;
  idleMs: number;
}

/** Waits until the server's log has the entry `what`, and answers its time. The log begins at the last `reset`. */
async function seenAt({ servers, seen }: BenchHome, server: string, what: string): Promise<number> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const at = (await seen(what))[servers.indexOf(server)];
    if (at !== undefined) return at;
    if (performance.now() > deadlineMs) throw new Error(`${server}: not ${what} after 30 s`);
    await sleep(POLL_MS);
  }
}

/** The log entry of a server's process that shows that an edit of this kind was applied. */
const PROCESS: Partial<Record<Kind, "ended" | "listed">> = {
  "server removed": "ended",
  "server added": "listed",
  "args changed": "listed",
};

async function applyEdit(pi: MeasuredPi, home: BenchHome, edit: Edit): Promise<Applied> {
  const { kind, server, content, notice } = edit;
  await home.reset({ cold: false });
  const noticed = pi.noticeAt(notice);
  const savedAtMs = epochMs();
  await home.home.writeMcp(content);
  const ms = (await noticed) - savedAtMs;
  const what = PROCESS[kind];
  const serverMs =
    server === undefined || what === undefined ? undefined : (await seenAt(home, server, what)) - savedAtMs;
  return { kind, quiet: edit.round < QUIET_ROUNDS, ms, serverMs };
}

async function look(pi: MeasuredPi, { kind, server, turns, isRight }: Edit): Promise<void> {
  const { results } = await pi.prompt(...turns);
  const result = results.at(-1) ?? "";
  if (!isRight(result)) throw new Error(`${kind} of ${server}: the model sees ${result.slice(0, 200)}`);
}

/** Collects stalls of main during chosen tasks only, so that Pi's own work stays out of the figures. */
function createWatch(pi: MeasuredPi, idle: IdleBeat) {
  const parts: string[] = [];
  return {
    during: async <T>(task: () => Promise<T>): Promise<T> => {
      const part = `part ${parts.length}`;
      parts.push(part);
      await pi.mark(`${part} begins`);
      const value = await task();
      await pi.mark(`${part} ends`);
      return value;
    },
    report: async (): Promise<Pick<Sample, "longestStallMs" | "mostCpuInStallMs" | "idleMs">> => {
      const probe = await pi.report();
      const gaps = await idle.take();
      const windows = parts.map((part) => probe.between(`${part} begins`, `${part} ends`));
      return {
        longestStallMs: Math.max(...windows.map(({ longestStallMs }) => longestStallMs)),
        mostCpuInStallMs: Math.max(...windows.map(({ mostCpuInStallMs }) => mostCpuInStallMs)),
        idleMs: Math.max(...windows.map((window) => longestWithin(gaps, window))),
      };
    },
  };
}

interface Case {
  variant: Variant;
  home: BenchHome;
  /** Every server that an edit may configure; empty for bare Pi. */
  all: Entries;
  samples: Sample[];
}

async function makeCase(variant: Variant): Promise<Case> {
  const home = await createBenchHome(variant, SHAPE);
  const all: Entries = variant.entry ? JSON.parse(await readFile(home.home.mcpFile, "utf8")).mcpServers : {};
  return { variant, home, all, samples: [] };
}

async function runOnce({ variant, home, all }: Case, idle: IdleBeat): Promise<Sample> {
  const { first, edits } = makeEdits(all, variant);
  const isBare = variant.entry === undefined;
  const added = Object.values(all)[SERVERS];
  const ownMs = added ? await ownStartMs(added) : Number.NaN;
  await home.reset({ cold: true });
  if (!isBare) await home.home.writeMcp(first);
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    for (const server of Object.keys(first.mcpServers)) await seenAt(home, server, "listed");
    await pi.prompt(variant.find(home.servers[0] ?? "", "payload"));
    await idle.take();
    const watch = createWatch(pi, idle);
    const applied: Applied[] = [];
    for (const edit of edits) {
      await sleep(edit.round < QUIET_ROUNDS && !isBare ? QUIET_MS : PAUSE_MS);
      if (isBare) {
        await watch.during(() => sleep(BARE_MS));
        await pi.prompt(...edit.turns);
      } else {
        applied.push(await watch.during(() => applyEdit(pi, home, edit)));
        await look(pi, edit);
      }
      await watch.during(() => sleep(AFTER_MS));
    }
    return { ownStartMs: ownMs, applied, ...(await watch.report()) };
  } finally {
    await pi.dispose();
  }
}

const SERVER_METRIC = { ended: "its process ended after", listed: "its tools were sent after" } as const;

function rowsOfKind(kind: Kind, samples: readonly Sample[]): Row[] {
  const row = (metric: string, pick: (sample: Sample) => number, target?: number): Row => ({
    case: kind,
    metric,
    unit: "ms",
    values: samples.map(pick),
    ...(target === undefined ? {} : { target }),
  });
  const times = (pick: (applied: Applied) => number | undefined) => (sample: Sample) =>
    sample.applied
      .filter((applied) => applied.kind === kind)
      .map(pick)
      .filter((ms) => ms !== undefined);
  const whole = times(({ ms }) => ms);
  const what = PROCESS[kind];
  const ofProcess = times(({ serverMs }) => serverMs);
  const target =
    kind === "settings" || kind === "server removed" || kind === "rules changed" ? APPLIED_MS : undefined;
  const rows = [
    row(`applied, median of ${EDITS_OF_A_KIND}`, (sample) => median(whole(sample)), target),
    row(`applied, worst of ${EDITS_OF_A_KIND}`, (sample) => Math.max(...whole(sample)), target),
    row(
      `applied, median of ${QUIET_ROUNDS} after ${QUIET_MS / 1_000} s of quiet`,
      (sample) => median(times(({ ms, quiet }) => (quiet ? ms : undefined))(sample)),
      target,
    ),
  ];
  if (what)
    rows.push(row(`${SERVER_METRIC[what]}, worst`, (sample) => Math.max(...ofProcess(sample)), target));
  if (target === undefined) {
    rows.push(
      row("applied less its own start, median", (s) => median(whole(s)) - s.ownStartMs, APPLIED_MS),
      row("applied less its own start, worst", (s) => Math.max(...whole(s)) - s.ownStartMs, APPLIED_MS),
    );
  }
  return rows;
}

function stallRows(variant: Variant, samples: readonly Sample[], compare: boolean): Row[] {
  const isOurs = variant.id === "ours";
  const row = (metric: string, pick: (sample: Sample) => number, target?: number): Row => ({
    case: variant.label,
    metric,
    unit: "ms",
    values: samples.map(pick),
    ...(isOurs && compare ? { baseline: "bare Pi" } : {}),
    ...(isOurs && compare && target !== undefined ? { target } : {}),
  });
  return [
    row("longest stall of main meanwhile", ({ longestStallMs }) => longestStallMs, STALL_MS),
    row("most CPU of main in one stall", ({ mostCpuInStallMs }) => mostCpuInStallMs, STALL_MS),
    alone(row("longest stall of an idle thread meanwhile", ({ idleMs }) => idleMs)),
  ];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const variants = (await loadVariants(options)).filter(({ id }) => id === "none" || id === "ours");
  const cases: Case[] = [];
  const idle = startIdleBeat();
  try {
    for (const variant of variants) cases.push(await makeCase(variant));
    for (let index = 0; index < runs; index++) {
      for (const one of cases) {
        progress(`reload: run ${index + 1} of ${runs}, ${one.variant.label}`);
        one.samples.push(await runOnce(one, idle));
      }
    }
  } finally {
    await idle.stop();
    for (const { home } of cases) await home.dispose();
  }
  const compare = variants.some(({ id }) => id === "none");
  const ours = cases.find(({ variant }) => variant.id === "ours")?.samples ?? [];
  const own: Row = {
    case: "the new server alone",
    metric: "its own start: spawn, initialize, tools/list",
    unit: "ms",
    values: ours.map((sample) => sample.ownStartMs),
  };
  return [
    ...KINDS.flatMap((kind) => rowsOfKind(kind, ours)),
    own,
    ...cases.flatMap(({ variant, samples }) => stallRows(variant, samples, compare)),
  ];
}

export const reload: Scenario = {
  name: "reload",
  description: `${EDITS_OF_A_KIND * KINDS.length} edits of mcp.json with ${SERVERS} eager servers of 50 tools: from saved to applied`,
  run,
};
