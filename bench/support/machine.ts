/**
 * Owns: the line with the machine, the program versions and the day of a measurement.
 * Must not: name the host or the user.
 */
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { PI_VERSION } from "../../test/support/pi-host.ts";

export interface Machine {
  cpu: string;
  cores: number;
  memoryGb: number;
  platform: string;
  node: string;
  pi: string;
  /** Day of the run, for example `2026-01-31`. */
  date: string;
  /** The system's load average of the minute before the run, which does not include the bench itself. */
  loadBefore: number;
}

export function describeMachine(): Machine {
  return {
    cpu: (cpus()[0]?.model ?? "unknown CPU").replaceAll(/\s+/g, " ").trim(),
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 1024 ** 3),
    platform: `${process.platform} ${process.arch}`,
    node: process.versions.node,
    pi: PI_VERSION,
    date: new Date().toISOString().slice(0, 10),
    loadBefore: loadavg()[0] ?? Number.NaN,
  };
}

export function machineLine(machine: Machine): string {
  const { cpu, cores, memoryGb, platform, node, pi, date, loadBefore } = machine;
  const load = `load before the run ${loadBefore.toFixed(1)}`;
  return `${cpu}, ${cores} cores, ${memoryGb} GB, ${platform}, Node ${node}, Pi ${pi}, ${date}, ${load}`;
}
