/**
 * Owns: a heartbeat in a thread that does nothing else, while Pi is measured. It shows how long the machine itself let
 * a ready thread wait: a stall that both Pi's main thread and this thread have is the machine's.
 * Must not: know what is measured.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** The same rhythm and threshold as probe.mjs. */
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
  /** Gaps since the last call; milliseconds since the epoch. */
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
