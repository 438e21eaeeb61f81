/**
 * Owns: what a start of the real Pi costs with our packed extension, beside Pi with an empty one.
 * Must not: start Pi by itself or read its process; bench/support/pi-start.ts does.
 *
 * All cases run in turn within one sitting, so that a slow minute of the machine hits each alike.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { unpackTarball } from "../../test/support/package-under-node-modules.ts";
import { ensurePi } from "../../test/support/pi-host.ts";
import { type PiStart, type PreparedHome, prepareHome, startOnce } from "../support/pi-start.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { EMPTY_EXTENSION } from "../support/with-probe.ts";

const ENTRY = join(import.meta.dirname, "..", "..", "dist", "index.js");
const DEFAULT_RUNS = 5;
const SERVERS = 20;
const BARE = "bare Pi";

interface Case {
  name: string;
  subject: string;
  home: PreparedHome;
  /** The snapshot is removed before each run, so that every server is connected to learn its tools. */
  cold: boolean;
  /** Limit in milliseconds for load and factory over an empty extension. */
  loadTargetMs?: number;
}

async function prepareCases(
  entry: string,
  progress: ScenarioOptions["progress"],
): Promise<{ cases: Case[]; dispose: () => Promise<void> }> {
  const home = async (toolsPerServer: number): Promise<PreparedHome> => {
    progress(`start: preparing ${SERVERS} servers x ${toolsPerServer} tools`);
    return prepareHome({ entry, servers: SERVERS, toolsPerServer });
  };
  const [small, large] = [await home(50), await home(100)];
  return {
    cases: [
      { name: BARE, subject: EMPTY_EXTENSION, home: small, cold: false },
      { name: "ours, cold, 20 x 50 tools", subject: entry, home: small, cold: true, loadTargetMs: 25 },
      { name: "ours, warm, 20 x 50 tools", subject: entry, home: small, cold: false, loadTargetMs: 8 },
      { name: "ours, warm, 2,000 tools", subject: entry, home: large, cold: false, loadTargetMs: 15 },
    ],
    dispose: async () => {
      await small.dispose();
      await large.dispose();
    },
  };
}

type Pick = (start: PiStart) => number | undefined;

/** What Pi itself spends is in both cases, so targets are held against the difference. */
function rowsOf({ name, cold, loadTargetMs }: Case, starts: readonly PiStart[], compare: boolean): Row[] {
  const compared = compare && name !== BARE;
  const row = (metric: string, unit: Row["unit"], pick: Pick, target?: number): Row => ({
    case: name,
    metric,
    unit,
    values: starts.map(pick).filter((value) => value !== undefined),
    ...(compared ? { baseline: BARE } : {}),
    ...(compared && target !== undefined ? { target } : {}),
  });
  const rows = [
    row("load and factory", "ms", ({ probe }) => probe.loadMs, loadTargetMs),
    row("session_start handler", "ms", ({ probe }) => probe.sessionStartMs, 2),
    row("before_agent_start handler", "ms", ({ probe }) => probe.beforeAgentStartMs),
    row("first request after", "ms", ({ firstRequestMs }) => firstRequestMs, 50),
    row("longest stall, loading", "ms", ({ probe }) => probe.longestStallLoadingMs, 10),
    row("longest stall, session", "ms", ({ probe }) => probe.longestStallSessionMs, 10),
    row("most CPU in one stall, session", "ms", ({ probe }) => probe.mostCpuInStallMs),
    row("main-thread CPU, first 2 s", "ms", ({ probe }) => probe.cpuMs, cold ? 40 : undefined),
    row("session_shutdown handler", "ms", ({ shutdownMs }) => shutdownMs),
    row("memory of the process", "MB", ({ probe }) => probe.rssMb),
  ];
  return cold ? [...rows, row("all servers connected after", "ms", ({ connectedMs }) => connectedMs)] : rows;
}

async function run({ runs = DEFAULT_RUNS, vs, progress }: ScenarioOptions): Promise<Row[]> {
  if (!existsSync(ENTRY)) throw new Error("dist/index.js is missing: run `npm run build` first");
  await ensurePi();
  const unpacked = await unpackTarball();
  const { cases, dispose } = await prepareCases(unpacked.entry, progress);
  const compare = vs.includes("none");
  const measured = cases.filter((candidate) => compare || candidate.name !== BARE);
  const starts = new Map(measured.map((one) => [one, [] as PiStart[]]));
  try {
    for (let index = 0; index < runs; index++) {
      progress(`start: run ${index + 1} of ${runs}`);
      for (const [one, list] of starts) list.push(await startOnce(one));
    }
  } finally {
    await dispose();
    await unpacked.dispose();
  }
  return [...starts].flatMap(([one, list]) => rowsOf(one, list, compare));
}

export const start: Scenario = {
  name: "start",
  description: "the first two seconds of the real Pi with the packed extension",
  run,
};
