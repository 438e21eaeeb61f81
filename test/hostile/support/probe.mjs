/**
 * Owns: how much Pi's main thread computes between two turns of its event loop, told by the command `/probe <file>`:
 * writes the longest gap and the most CPU in one gap since the last call to that file, and starts anew; and the keys
 * that every object has got, of which there must be none.
 * Must not: decide anything.
 * Called by: Pi, as the first extension of all. CPU time of the thread does not count what other processes take.
 */
import { writeFileSync } from "node:fs";

const HEARTBEAT_MS = 2;

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

let lastMs = performance.now();
let lastCpuMs = cpuMs();
const nothing = { longestMs: 0, mostCpuMs: 0, cpuMs: 0 };
let worst = { ...nothing };

/** Ends the open gap: also one that is not over when it is asked for counts. */
const beat = () => {
  const [nowMs, nowCpuMs] = [performance.now(), cpuMs()];
  const spentMs = nowCpuMs - lastCpuMs;
  worst.longestMs = Math.max(worst.longestMs, nowMs - lastMs);
  worst.mostCpuMs = Math.max(worst.mostCpuMs, spentMs);
  worst.cpuMs += spentMs;
  lastMs = nowMs;
  lastCpuMs = nowCpuMs;
};

setInterval(beat, HEARTBEAT_MS).unref();

export default function probe(pi) {
  pi.registerCommand("probe", {
    description: "Writes what the main thread spent",
    handler: async (file) => {
      beat();
      const polluted = [];
      for (const key in {}) polluted.push(key);
      writeFileSync(file, JSON.stringify({ ...worst, polluted }));
      worst = { ...nothing };
    },
  });
}
