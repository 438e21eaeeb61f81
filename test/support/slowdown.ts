/**
 * Owns: how much slower the machine is than the one on which the bounds were chosen: how much longer work takes than it computes,
 * because other programs use the cores, and how much longer it computes, because the cores are slow or share their caches.
 * A bound is tried without it first: only what exceeds it is judged by the machine.
 */
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

/** CPU time of this thread alone, in milliseconds: others of the process do not count. */
export function cpuMs(work: () => unknown): number {
  const from = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(from);
  return (user + system) / 1_000;
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

/** What main does with what servers say: it parses, copies, measures, sorts and writes texts. */
const WORK = JSON.stringify(
  Array.from({ length: 6_000 }, (_, number) => ({
    name: `tool_${(number * 7_919) % 6_000}`,
    description: `Reads the ${number}th page of \u{1f4d6} and answers its words. `.repeat(3),
    inputSchema: { type: "object", properties: { page: { type: "integer", minimum: number } } },
  })),
);
/** CPU time of this work on the machine on which the bounds were chosen (2 cores of an AMD EPYC, Node 24). */
const WORK_MS = 68;

function workOnce(): void {
  const tools = JSON.parse(WORK) as { name: string; description: string }[];
  tools.sort((one, other) => (one.name < other.name ? -1 : 1));
  const words = tools.flatMap(({ description }) => description.normalize("NFKC").match(/\w+/gu) ?? []);
  JSON.stringify([tools, new Set(words).size]);
}

/** Returns 1 on the machine on which the bounds were chosen or a faster one, and 2 if equal work takes twice the CPU time. */
export async function coreSlowness(): Promise<number> {
  const samples: number[] = [];
  for (let count = 0; count < SAMPLES; count++) {
    samples.push(cpuMs(workOnce));
    await sleep(PAUSE_MS);
  }
  const [median = WORK_MS] = samples.toSorted((one, other) => one - other).slice(SAMPLES >> 1);
  return Math.max(1, median / WORK_MS);
}

/** How much longer work takes by the clock than on the machine on which the bounds were chosen. */
export const clockSlowness = async (): Promise<number> => (await machineSlowdown()) * (await coreSlowness());
