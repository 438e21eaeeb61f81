/**
 * Owns: the measurement of what Pi's main thread computes between two turns of its event loop. The command
 * `/probe <file>` writes to that file the longest gap and the most CPU time in one gap since the last `/probe`, and the
 * keys that `Object.prototype` has gained, which must be none. CPU time of the thread excludes other processes.
 * Must not: decide anything.
 * Called by: Pi, as the first of all extensions.
 */
import { writeFileSync } from "node:fs";

/** Each beat wakes Pi. At 2 ms the beats took 2 % of a core, more than most attacks. */
const HEARTBEAT_MS = 5;

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

let lastMs = performance.now();
let lastCpuMs = cpuMs();
const nothing = { longestMs: 0, mostCpuMs: 0, cpuMs: 0 };
let worst = { ...nothing };

/** Ends the current gap, so that a gap still open at `/probe` counts too. */
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
