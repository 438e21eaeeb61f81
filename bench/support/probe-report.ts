/**
 * Owns: the reader of the report of probe.mjs: stalls, CPU and memory of Pi's main thread, times between marks.
 * Must not: start Pi.
 * Called by: the demo and the scenarios that run Pi.
 */
import { readFile } from "node:fs/promises";

interface Mark {
  name: string;
  atMs: number;
  cpuMs: number;
  processCpuMs: number;
  /** Memory at the mark, and its peaks since the mark before; only for `/bench-mark`. */
  heapBytes?: number;
  rssBytes?: number;
  peakHeapBytes?: number;
  peakRssBytes?: number;
}

/** Times are milliseconds since the start of Pi's process; `cpuMs` is that of its main thread since then. */
interface RawReport {
  gaps: { startMs: number; ms: number; cpuMs: number }[];
  marks: Mark[];
  rssBytes: number;
  /** Start of the process, in milliseconds since the epoch. */
  originMs: number;
}

/** Figures of main between two marks of `/bench-mark`. */
export interface Window {
  wallMs: number;
  /** Milliseconds since the epoch. */
  fromMs: number;
  toMs: number;
  cpuMs: number;
  /** CPU time of all threads of the process. */
  processCpuMs: number;
  longestStallMs: number;
  /** The most CPU time of the main thread in one gap. */
  mostCpuInStallMs: number;
  /** Highest heap size of the main thread in the window, minus that at its start. */
  heapGrowthMb: number;
  rssGrowthMb: number;
}

export interface Memory {
  heapMb: number;
  rssMb: number;
}

export interface ProbeReport {
  /** Longest time between two beats of the 2 ms heartbeat until Pi had loaded all extensions. */
  longestStallLoadingMs: number;
  /** Longest time between two beats of the 2 ms heartbeat after that. */
  longestStallSessionMs: number;
  /** The most CPU time of the main thread in one gap of the session: a stall without the time of other threads. */
  mostCpuInStallMs: number;
  /** Time for import and factory of the subject, including Pi's cost for any extension. */
  loadMs: number;
  /** Time in this handler of the subject, as below; undefined if the event did not happen. */
  sessionStartMs: number | undefined;
  beforeAgentStartMs: number | undefined;
  shutdownMs: number | undefined;
  /** CPU time of the main thread since the start of the process. */
  cpuMs: number;
  /** CPU time of all threads since then. */
  processCpuMs: number;
  rssMb: number;
  /** Throws if a mark is missing. */
  between(from: string, to: string): Window;
  at(mark: string): Memory;
}

const BYTES_PER_MB = 1024 ** 2;

/** Reads a report. Throws if Pi wrote none, because it ended without its exit hooks. */
export async function readProbeReport(file: string): Promise<ProbeReport> {
  const raw = JSON.parse(await readFile(file, "utf8")) as RawReport;
  const find = (name: string): Mark | undefined => raw.marks.find((mark) => mark.name === name);
  const between = (from: string, to: string): number | undefined => {
    const [start, end] = [find(from), find(to)];
    return start && end ? end.atMs - start.atMs : undefined;
  };
  const required = (name: string): Required<Mark> => {
    const mark = find(name);
    if (mark?.rssBytes === undefined) throw new Error(`the probe has no mark ${name}`);
    return mark as Required<Mark>;
  };
  const loadMs = between("subject loads", "subject loaded");
  if (loadMs === undefined) throw new Error("Pi did not load the extensions around the one that is measured");
  const loadedAtMs = find("session_start begins")?.atMs ?? Number.POSITIVE_INFINITY;
  const loading = raw.gaps.filter((gap) => gap.startMs < loadedAtMs);
  const session = raw.gaps.filter((gap) => gap.startMs >= loadedAtMs);
  return {
    longestStallLoadingMs: Math.max(0, ...loading.map((gap) => gap.ms)),
    longestStallSessionMs: Math.max(0, ...session.map((gap) => gap.ms)),
    mostCpuInStallMs: Math.max(0, ...session.map((gap) => gap.cpuMs)),
    loadMs,
    sessionStartMs: between("session_start begins", "session_start ends"),
    beforeAgentStartMs: between("before_agent_start begins", "before_agent_start ends"),
    shutdownMs: between("session_shutdown begins", "session_shutdown ends"),
    cpuMs: raw.marks.at(-1)?.cpuMs ?? Number.NaN,
    processCpuMs: raw.marks.at(-1)?.processCpuMs ?? Number.NaN,
    rssMb: raw.rssBytes / BYTES_PER_MB,
    between: (from, to) => {
      const [start, end] = [required(from), required(to)];
      const gaps = raw.gaps.filter((gap) => gap.startMs >= start.atMs - 1 && gap.startMs < end.atMs);
      const parts = raw.marks.filter((mark) => mark.atMs > start.atMs && mark.atMs <= end.atMs);
      const peak = (key: "peakHeapBytes" | "peakRssBytes"): number =>
        Math.max(...parts.map((mark) => mark[key] ?? 0));
      return {
        wallMs: end.atMs - start.atMs,
        fromMs: raw.originMs + start.atMs,
        toMs: raw.originMs + end.atMs,
        cpuMs: end.cpuMs - start.cpuMs,
        processCpuMs: end.processCpuMs - start.processCpuMs,
        longestStallMs: Math.max(0, ...gaps.map((gap) => gap.ms)),
        mostCpuInStallMs: Math.max(0, ...gaps.map((gap) => gap.cpuMs)),
        heapGrowthMb: (peak("peakHeapBytes") - start.heapBytes) / BYTES_PER_MB,
        rssGrowthMb: (peak("peakRssBytes") - start.rssBytes) / BYTES_PER_MB,
      };
    },
    at: (name) => {
      const { heapBytes, rssBytes } = required(name);
      return { heapMb: heapBytes / BYTES_PER_MB, rssMb: rssBytes / BYTES_PER_MB };
    },
  };
}
