/**
 * Owns: the same calls to one server program through the hub of shared servers and to a process of the session's own: a small
 * call, a result of 20 MB with small calls to another server beside it, and parallel calls of two sessions at once. Without Pi,
 * in the bench process: two runtimes of the extension, which are two sessions.
 * Must not: make rows.
 * Called by: the scenario `shared`.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BENCH_SERVER } from "./bench-home.ts";
import { openSession, type Runtime } from "./own-session.ts";
import { percentile } from "./stats.ts";

const WARM_UP = 100;
const CALLS = 500;
export const PARALLEL = 50;
const BATCHES = 20;
const LARGE_BYTES = 20 * 1024 * 1024;
const LARGE_CALLS = 5;
const HUB_END_MS = 1_000;

/** How the called server runs, and the names of two entries that do so. */
export const WAYS = { direct: ["own", "own-too"], hub: ["shared", "shared-too"] } as const;
export type Way = keyof typeof WAYS;

export interface WayFigures {
  p50Ms: number;
  p99Ms: number;
  /** Median of a result of 20 MB, until it is shaped for the model. */
  largeMs: number;
  /** The longest small call to another server while such a result comes. */
  besideMs: number;
  /** From the first of 2 x 50 calls of two sessions to the last answer. */
  parallelMs: number;
}

/** Two entries of one program are one process of the hub, unless something differs: here a variable. */
const entries = () => {
  const entry = (more: object, part: string) => ({
    command: process.execPath,
    args: [BENCH_SERVER],
    env: { PART: part },
    ...more,
  });
  return Object.fromEntries(
    Object.entries(WAYS).flatMap(([way, names]) =>
      names.map((name, part) => [name, entry(way === "hub" ? { shared: true } : {}, String(part))]),
    ),
  );
};

let calls = 0;

async function call(runtime: Runtime, server: string, tool: string, args: Record<string, unknown>) {
  const params = { callId: `call-${++calls}`, server, tool, args };
  const [content] = (await runtime.callTool(params, undefined)).content;
  return content?.type === "text" ? content.text : "";
}

async function echo(runtime: Runtime, server: string, text: string): Promise<void> {
  const answer = await call(runtime, server, "echo", { text });
  if (!answer.includes(`"${text}"`)) throw new Error(`${text} was answered with ${answer}`);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

async function repeated(times: number, work: (index: number) => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  for (let index = 0; index < times; index++) took.push(await timed(() => work(index)));
  return took;
}

/** A result of 20 MB, and the longest of the small calls to `other` until it is there. */
async function largeCall(runtime: Runtime, server: string, other: string, index: number) {
  let isDone = false;
  const id = `large-${server}-${index}`;
  const large = timed(async () => {
    const text = await call(runtime, server, "payload", { id, kind: "text", bytes: LARGE_BYTES });
    isDone = true;
    if (!text.includes(id)) throw new Error(`${id} was answered with another text`);
  });
  let longestMs = 0;
  while (!isDone) longestMs = Math.max(longestMs, await timed(() => echo(runtime, other, "beside")));
  return { largeMs: await large, longestMs };
}

async function measureWay(way: Way, sessions: readonly Runtime[]): Promise<WayFigures> {
  const [first] = sessions;
  const [server, other] = WAYS[way];
  if (!first) throw new Error("no session");
  for (const session of sessions) {
    await repeated(WARM_UP, (index) => echo(session, server, `warm ${index}`));
    await echo(session, other, "warm");
  }
  await largeCall(first, server, other, -1);
  const small = await repeated(CALLS, (index) => echo(first, server, `call ${index}`));
  const large = [];
  for (let index = 0; index < LARGE_CALLS; index++) large.push(await largeCall(first, server, other, index));
  const batches = await repeated(BATCHES, (batch) =>
    Promise.all(
      sessions.flatMap((session, of) =>
        Array.from({ length: PARALLEL }, (_, index) => echo(session, server, `${of} ${batch} ${index}`)),
      ),
    ),
  );
  return {
    p50Ms: percentile(small, 0.5),
    p99Ms: percentile(small, 0.99),
    largeMs: percentile(
      large.map(({ largeMs }) => largeMs),
      0.5,
    ),
    besideMs: percentile(
      large.map(({ longestMs }) => longestMs),
      0.5,
    ),
    parallelMs: percentile(batches, 0.5),
  };
}

/** Both ways in turn, `runs` times. */
export async function measureWays(
  runs: number,
  progress: (run: number) => void,
): Promise<Record<Way, WayFigures[]>> {
  const agentDir = await mkdtemp(join(tmpdir(), "pmt-hub-"));
  const { XDG_RUNTIME_DIR: before } = process.env;
  // The hub's own folder goes with this one.
  process.env.XDG_RUNTIME_DIR = agentDir;
  const sessions: Runtime[] = [];
  const figures: Record<Way, WayFigures[]> = { direct: [], hub: [] };
  try {
    await writeFile(join(agentDir, "mcp.json"), JSON.stringify({ mcpServers: entries() }));
    for (let count = 0; count < 2; count++) sessions.push(await openSession(agentDir));
    for (let run = 1; run <= runs; run++) {
      progress(run);
      const ways: Way[] = run % 2 === 1 ? ["direct", "hub"] : ["hub", "direct"];
      for (const way of ways) figures[way].push(await measureWay(way, sessions));
    }
    return figures;
  } finally {
    await sessions[0]?.ask("hub", { stop: {} }, undefined).catch(() => undefined);
    for (const session of sessions) await session.stop();
    if (before === undefined) delete process.env.XDG_RUNTIME_DIR;
    else process.env.XDG_RUNTIME_DIR = before;
    // The hub writes its last line after its answer.
    await sleep(HUB_END_MS);
    await rm(agentDir, { recursive: true, force: true });
  }
}
