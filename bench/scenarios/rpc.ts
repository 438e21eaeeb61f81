/**
 * Owns: the cost of a request to the connection worker and its reply, compared with a bare `postMessage` ping-pong with
 * an empty worker in the same run; and the time until a new worker answers.
 * Must not: configure servers: without them the `status` request carries almost no data.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { createRpc } from "../../src/runtime/keep-worker.ts";
import { startThread } from "../../src/runtime/thread.ts";
import { builtWorkerUrl } from "../support/build.ts";
import { plainFacts } from "../support/own-session.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { percentile } from "../support/stats.ts";

const ROUND_TRIPS = 2_000;
const WARM_UP = 200;
const DEFAULT_RUNS = 3;
const DEADLINE_MS = 10_000;

const PONG =
  "const { parentPort } = require('node:worker_threads'); parentPort.on('message', (m) => parentPort.postMessage(m));";

interface Timing {
  /** Milliseconds from the start of the thread to its first answer. */
  firstMs: number;
  /** CPU time of the main thread in the same time. */
  firstCpuMs: number;
  roundTripsMs: number[];
}

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** `start` makes a worker and answers a function that makes one round trip to it. */
async function measure(start: () => () => Promise<unknown>): Promise<Timing> {
  const [startedMs, startedCpuMs] = [performance.now(), cpuMs()];
  const roundTrip = start();
  await roundTrip();
  const [firstMs, firstCpuMs] = [performance.now() - startedMs, cpuMs() - startedCpuMs];
  const roundTripsMs: number[] = [];
  for (let index = 0; index < WARM_UP + ROUND_TRIPS; index++) {
    const askedMs = performance.now();
    await roundTrip();
    if (index >= WARM_UP) roundTripsMs.push(performance.now() - askedMs);
  }
  return { firstMs, firstCpuMs, roundTripsMs };
}

async function measureRpc(agentDir: string, url: URL): Promise<Timing> {
  const thread = startThread({
    logFile: join(agentDir, "mcp-threads.log"),
    onEvent: () => {},
    url,
  });
  const rpc = createRpc(thread);
  const options = { deadlineMs: DEADLINE_MS };
  try {
    let opened: Promise<unknown> | undefined;
    return await measure(() => () => {
      // The first trip opens the session, like the first request of a Pi session.
      if (opened !== undefined) return rpc.request("status", {}, options);
      opened = rpc.request("startSession", plainFacts(agentDir), options);
      return opened;
    });
  } finally {
    await thread.terminate();
  }
}

async function measurePingPong(): Promise<Timing> {
  let worker: Worker | undefined;
  try {
    return await measure(() => {
      const pong = new Worker(PONG, { eval: true });
      worker = pong;
      let answered: (message: unknown) => void = () => {};
      // One listener serves all trips, as in a client.
      pong.on("message", (message) => answered(message));
      return () => {
        const { promise, resolve } = Promise.withResolvers<unknown>();
        answered = resolve;
        pong.postMessage({ id: 1, method: "status", params: {} });
        return promise;
      };
    });
  } finally {
    await worker?.terminate();
  }
}

function rowsOf(name: string, timings: readonly Timing[], baseline?: string): Row[] {
  const row = (metric: string, unit: Row["unit"], values: number[]): Row => ({
    case: name,
    metric,
    unit,
    values,
    ...(baseline === undefined ? {} : { baseline }),
  });
  const trip = (fraction: number): number[] =>
    timings.map(({ roundTripsMs }) => percentile(roundTripsMs, fraction) * 1_000);
  return [
    row("round trip, p50", "µs", trip(0.5)),
    row("round trip, p99", "µs", trip(0.99)),
    row(
      "new worker, first answer after",
      "ms",
      timings.map(({ firstMs }) => firstMs),
    ),
    row(
      "new worker, main-thread CPU until then",
      "ms",
      timings.map(({ firstCpuMs }) => firstCpuMs),
    ),
  ];
}

async function run({ runs = DEFAULT_RUNS, progress }: ScenarioOptions): Promise<Row[]> {
  const url = await builtWorkerUrl();
  const agentDir = await mkdtemp(join(tmpdir(), "pmt-rpc-"));
  const bare: Timing[] = [];
  const ours: Timing[] = [];
  try {
    for (let index = 0; index < runs; index++) {
      progress(`rpc: run ${index + 1} of ${runs}`);
      bare.push(await measurePingPong());
      ours.push(await measureRpc(agentDir, url));
    }
  } finally {
    await rm(agentDir, { recursive: true, force: true });
  }
  const bareName = "postMessage ping-pong";
  return [...rowsOf(bareName, bare), ...rowsOf("RPC, built worker", ours, bareName)];
}

export const rpc: Scenario = {
  name: "rpc",
  description: "round trip main -> connection worker -> main, against bare postMessage",
  run,
};
