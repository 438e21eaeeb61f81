/**
 * Owns: the cost of a small tool call through the connection worker, compared with the SDK's client on the main thread.
 * Both sides use the same server program, in the same process and sitting.
 * Must not: run Pi; Pi's own part of a call is the same on both sides.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { BENCH_SERVER } from "../support/bench-home.ts";
import { openSession } from "../support/own-session.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { percentile } from "../support/stats.ts";

const DEFAULT_RUNS = 5;
const WARM_UP = 200;
const CALLS = 500;
const PARALLEL = 50;
const BATCHES = 20;
const SERVER = "bench";
const BARE = "SDK client on main";
const OURS = "ours, through the worker";

/** Makes one small call and answers the text of its result. */
type Call = (text: string) => Promise<string>;

interface Side {
  call: Call;
  stop(): Promise<void>;
}

async function bareSide(): Promise<Side> {
  const client = new Client({ name: "bench", version: "1.0.0" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [BENCH_SERVER] }));
  return {
    call: async (text) => {
      const { content } = await client.callTool({ name: "echo", arguments: { text } });
      return (content as { text: string }[])[0]?.text ?? "";
    },
    stop: () => client.close(),
  };
}

async function ourSide(agentDir: string): Promise<Side> {
  const config = { mcpServers: { [SERVER]: { command: process.execPath, args: [BENCH_SERVER] } } };
  await writeFile(join(agentDir, "mcp.json"), JSON.stringify(config));
  const runtime = await openSession(agentDir);
  let calls = 0;
  const call: Call = async (text) => {
    const params = { callId: `call-${++calls}`, server: SERVER, tool: "echo", args: { text } };
    const [content] = (await runtime.callTool(params, undefined)).content;
    return content?.type === "text" ? content.text : "";
  };
  return { call, stop: () => runtime.stop() };
}

interface Timing {
  callsMs: number[];
  /** CPU time of the main thread for one call. */
  cpuUs: number;
  batchesMs: number[];
}

async function measure({ call }: Side): Promise<Timing> {
  const ask = async (text: string): Promise<void> => {
    const answer = await call(text);
    if (!answer.includes(`"${text}"`)) throw new Error(`${text} was answered with ${answer}`);
  };
  for (let index = 0; index < WARM_UP; index++) await ask(`warm ${index}`);
  const callsMs: number[] = [];
  const cpuBefore = process.threadCpuUsage();
  for (let index = 0; index < CALLS; index++) {
    const askedMs = performance.now();
    await ask(`call ${index}`);
    callsMs.push(performance.now() - askedMs);
  }
  const { user, system } = process.threadCpuUsage(cpuBefore);
  const batchesMs: number[] = [];
  for (let batch = 0; batch < BATCHES; batch++) {
    const askedMs = performance.now();
    await Promise.all(Array.from({ length: PARALLEL }, (_, index) => ask(`parallel ${batch} ${index}`)));
    batchesMs.push(performance.now() - askedMs);
  }
  return { callsMs, cpuUs: (user + system) / CALLS, batchesMs };
}

function rowsOf(name: string, timings: readonly Timing[], baseline?: string): Row[] {
  const row = (metric: string, unit: Row["unit"], values: number[], target?: number): Row => ({
    case: name,
    metric,
    unit,
    values,
    ...(baseline === undefined ? {} : { baseline }),
    ...(baseline === undefined || target === undefined ? {} : { target }),
  });
  const call = (fraction: number): number[] => timings.map(({ callsMs }) => percentile(callsMs, fraction));
  const batch = timings.map(({ batchesMs }) => percentile(batchesMs, 0.5));
  return [
    row("small call, p50", "ms", call(0.5), 0.3),
    row("small call, p99", "ms", call(0.99)),
    row(
      "main-thread CPU of a call",
      "µs",
      timings.map(({ cpuUs }) => cpuUs),
    ),
    row(`${PARALLEL} parallel calls, until the last`, "ms", batch),
  ];
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const agentDir = await mkdtemp(join(tmpdir(), "pmt-call-"));
  const timings: Record<string, Timing[]> = { [BARE]: [], [OURS]: [] };
  const sides: Side[] = [];
  try {
    const bare = await bareSide();
    sides.push(bare);
    const ours = await ourSide(agentDir);
    sides.push(ours);
    for (let index = 0; index < runs; index++) {
      progress(`call: run ${index + 1} of ${runs}`);
      // The sides take turns in going first, because the first of a pair finds a colder machine.
      const order = [
        [BARE, bare],
        [OURS, ours],
      ] as const;
      for (const [name, side] of index % 2 === 0 ? order : order.toReversed()) {
        timings[name]?.push(await measure(side));
      }
    }
  } finally {
    for (const side of sides) await side.stop();
    await rm(agentDir, { recursive: true, force: true });
  }
  return [...rowsOf(BARE, timings[BARE] ?? []), ...rowsOf(OURS, timings[OURS] ?? [], BARE)];
}

export const call: Scenario = {
  name: "call",
  description: "a small tool call over stdio through the worker, against the SDK's client on the main thread",
  run,
};
