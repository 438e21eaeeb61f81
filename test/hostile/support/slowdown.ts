/** Owns: how much longer work takes than it computes, because other programs use the machine's cores. */
import { setTimeout as sleep } from "node:timers/promises";

const SPIN_CPU_MICROS = 60_000;
const SAMPLES = 5;
const PAUSE_MS = 40;

function spinOnce(): number {
  const from = process.threadCpuUsage();
  const startedAt = performance.now();
  for (;;) {
    const { user, system } = process.threadCpuUsage(from);
    const cpuMs = (user + system) / 1_000;
    if (user + system >= SPIN_CPU_MICROS) return (performance.now() - startedAt) / cpuMs;
  }
}

/** Returns 1 on an idle machine, and about 2 if this thread gets half a core. */
export async function machineSlowdown(): Promise<number> {
  const samples: number[] = [];
  for (let count = 0; count < SAMPLES; count++) {
    samples.push(spinOnce());
    await sleep(PAUSE_MS);
  }
  return Math.max(1, ...samples);
}
