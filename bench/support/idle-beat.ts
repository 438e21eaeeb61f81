/**
 * Owns: a heartbeat in an otherwise idle thread, during a measurement of Pi. The heartbeat shows how long the machine
 * made a ready thread wait: if Pi's main thread and this thread stall at the same time, the machine caused it.
 * Must not: depend on the scenario.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** Program of the thread, with the same interval and threshold as probe.mjs. */
const BEAT = `
const { parentPort } = require("node:worker_threads");
const gaps = [];
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  if (now - last >= 4) gaps.push({ startMs: performance.timeOrigin + last, ms: now - last });
  last = now;
}, 2);
parentPort.on("message", () => parentPort.postMessage(gaps.splice(0)));
`;

export interface IdleBeat {
  /** Gaps since the last call; `startMs` is in milliseconds since the epoch. */
  take(): Promise<{ startMs: number; ms: number }[]>;
  stop(): Promise<void>;
}

export function startIdleBeat(): IdleBeat {
  const worker = new Worker(BEAT, { eval: true });
  return {
    take: async () => {
      worker.postMessage("take");
      const [gaps] = (await once(worker, "message")) as [{ startMs: number; ms: number }[]];
      return gaps;
    },
    stop: async () => {
      await worker.terminate();
    },
  };
}

export const longestWithin = (
  gaps: readonly { startMs: number; ms: number }[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
): number =>
  Math.max(
    0,
    ...gaps.filter((gap) => gap.startMs + gap.ms > fromMs && gap.startMs < toMs).map(({ ms }) => ms),
  );
