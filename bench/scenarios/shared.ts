/**
 * Owns: what several sessions at once cost with servers of their own and with shared ones, in the real Pi over eight real
 * servers of npm; and what a call through the hub of shared servers costs more than a direct one.
 * Must not: hold a server that keeps state against another client: every session calls `echo` alone.
 */
import { measureWays, PARALLEL, type WayFigures } from "../support/hub-calls.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { type Arm, measureSitting, type SittingFigures } from "../support/several-sessions.ts";
import { loadVariants } from "../support/variants.ts";

const DEFAULT_RUNS = 3;
const SESSIONS = 8;
const FEW_SESSIONS = 2;
/** Sessions for which a target is named. */
const NAMED = 5;
const NAMED_MB = 1_400;
const FURTHER_MB = 45;
/** Whole, and beyond a call of Pi's own tool. */
const LATER_CALL_MS = { whole: 150, beyond: 50 };
const HUB_CALL_MS = 0.3;
const HUB_LARGE_MS = 60;
const HUB_BESIDE_MS = 20;

const SHARED = "ours, shared";
const BARE = "bare Pi";

const about = (count: number): string => `${count} ${count === 1 ? "session" : "sessions"}`;

function sittingRows(arm: Arm, sittings: readonly SittingFigures[], compare: boolean): Row[] {
  const { label, isShared } = arm;
  const others = label === SHARED ? {} : { ours: SHARED };
  const base = { case: label, ...others } as const;
  const counts = sittings[0]?.sessions.map((_, index) => index + 1) ?? [];
  const at = (count: number) => sittings.flatMap(({ sessions }) => sessions[count - 1] ?? []);
  const further = sittings.flatMap(({ sessions }) => {
    const [first, last] = [sessions[0], sessions.at(-1)];
    return first && last && sessions.length > 1
      ? [(last.memoryMb - first.memoryMb) / (sessions.length - 1)]
      : [];
  });
  const left = (metric: string, pick: (one: SittingFigures) => number): Row => ({
    ...base,
    metric,
    unit: "processes",
    values: sittings.map(pick),
  });
  const leftRows = [
    left("left after the last session", (one) => one.left),
    left("left after the hub was told to end", (one) => one.leftAfterHub),
  ];
  const rows: Row[] = [
    ...counts.map(
      (count): Row => ({
        ...base,
        metric: `memory of ${about(count)}`,
        unit: "MB",
        values: at(count).map(({ memoryMb }) => memoryMb),
        ...(isShared && count === NAMED ? { target: NAMED_MB } : {}),
      }),
    ),
    {
      ...base,
      metric: "memory of each further session",
      unit: "MB",
      values: further,
      ...(compare && label !== BARE ? { baseline: BARE } : {}),
      ...(compare && isShared ? { target: FURTHER_MB } : {}),
    },
    ...counts.map(
      (count): Row => ({
        ...base,
        metric: `processes of ${about(count)}`,
        unit: "processes",
        values: at(count).map(({ processes }) => processes),
      }),
    ),
  ];
  const calls = counts.flatMap((count): Row[] => {
    const figures = at(count);
    const prompts = Math.max(...figures.map((figure) => figure.prompts));
    const asked = prompts > 1 ? { note: `asked up to ${prompts} times, until the client knew the tool` } : {};
    const over = compare && label !== BARE ? { baseline: BARE } : {};
    const target = compare ? LATER_CALL_MS.beyond : LATER_CALL_MS.whole;
    return [
      {
        ...base,
        ...(label === BARE ? { note: "of its own tool read" } : asked),
        ...over,
        metric: `first call of session ${count}, from its prompt`,
        unit: "ms",
        values: figures.map(({ callMs }) => callMs),
        ...(isShared && count > 1 && count <= NAMED ? { target } : {}),
      },
      {
        ...base,
        metric: `session ${count}, from its start to its first answer`,
        unit: "ms",
        ...over,
        values: figures.map(({ startMs }) => startMs),
      },
    ];
  });
  return [...rows, ...calls, ...(label === BARE ? [] : leftRows)];
}

function callRows(name: string, figures: readonly WayFigures[], baseline?: string): Row[] {
  const row = (metric: string, pick: (one: WayFigures) => number, target?: number): Row => ({
    case: name,
    metric,
    unit: "ms",
    values: figures.map(pick),
    ...(baseline === undefined ? {} : { baseline, ...(target === undefined ? {} : { target }) }),
  });
  return [
    row("small call, p50", ({ p50Ms }) => p50Ms, HUB_CALL_MS),
    row("small call, p99", ({ p99Ms }) => p99Ms),
    row("result of 20 MB", ({ largeMs }) => largeMs, HUB_LARGE_MS),
    row("longest small call to another server meanwhile", ({ besideMs }) => besideMs, HUB_BESIDE_MS),
    row(`2 x ${PARALLEL} parallel calls of two sessions, until the last`, ({ parallelMs }) => parallelMs),
  ];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const {
    small,
    sessions = small ? FEW_SESSIONS : SESSIONS,
    runs = small ? 1 : DEFAULT_RUNS,
    progress,
  } = options;
  const arms = (await loadVariants(options)).flatMap((variant): Arm[] => {
    const own = { label: variant.label, variant, isShared: false };
    return variant.id === "ours" ? [own, { label: SHARED, variant, isShared: true }] : [own];
  });
  const sittings = new Map(arms.map((arm) => [arm, { list: [] as SittingFigures[], failure: "" }]));
  for (let index = 1; index <= runs; index++) {
    for (const [arm, sitting] of sittings) {
      if (sitting.failure !== "") continue;
      const told = (session: number): void =>
        progress(
          `shared: run ${index} of ${runs}, ${arm.label}, ${session === 0 ? "learning the tools" : `session ${session} of ${sessions}`}`,
        );
      try {
        sitting.list.push(await measureSitting(arm, { sessions, few: small, progress: told }));
      } catch (error) {
        // A peer that fails costs its own figures alone.
        if (arm.variant.id === "ours") throw error;
        sitting.failure = String(error).split("\n", 1)[0] ?? "";
        progress(`shared: ${arm.label} is not measured any more: ${sitting.failure}`);
      }
    }
  }
  const ways = await measureWays(runs, (index) => progress(`shared: calls, run ${index} of ${runs}`));
  const compare = options.vs.includes("none");
  return [
    ...[...sittings].flatMap(([arm, { list, failure }]): Row[] => [
      ...sittingRows(arm, list, compare),
      ...(failure === ""
        ? []
        : [{ case: arm.label, metric: "failed", unit: "processes", values: [], note: failure } as const]),
    ]),
    ...callRows("server of the session", ways.direct),
    ...callRows("server of the hub", ways.hub, "server of the session"),
  ];
}

export const shared: Scenario = {
  name: "shared",
  description: `1 to ${SESSIONS} sessions at once over 8 real servers, of their own and shared (--small: ${FEW_SESSIONS} over 3), and a call through the hub`,
  run,
};
