/**
 * Owns: measuring Pi's main thread from inside Pi: a heartbeat, marks with CPU time, a report file.
 * Must not: import anything but `node:` (Pi then loads it natively) or keep Pi alive.
 * Called by: Pi, as the extension before the one that is measured; probe-after.mjs is loaded right after it.
 *
 * The report goes to the file named by BENCH_REPORT when the process exits, and at each `/bench-report`.
 * Marks come in pairs around the subject, as Pi loads extensions and calls handlers in order and awaits each.
 */
import { writeFileSync } from "node:fs";

const HEARTBEAT_MS = 2;
/** Shorter gaps are the rhythm of the timer itself. */
const NOTED_GAP_MS = 4;
const NOTED_GAPS = 20_000;

const gaps = [];
const marks = [];
let lastBeatMs = performance.now();
let lastCpuMs = 0;

/** Times are milliseconds since the process started. */
const noteGap = (nowMs) => {
  const ms = nowMs - lastBeatMs;
  const nowCpuMs = cpuMs();
  if (ms >= NOTED_GAP_MS && gaps.length < NOTED_GAPS) {
    gaps.push({ startMs: lastBeatMs, ms, cpuMs: nowCpuMs - lastCpuMs });
  }
  lastBeatMs = nowMs;
  lastCpuMs = nowCpuMs;
};

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

const mark = (name) => marks.push({ name, atMs: performance.now(), cpuMs: cpuMs() });

const report = () => {
  const file = process.env.BENCH_REPORT;
  if (file === undefined) return;
  // A gap that is still open counts: the thread has not come back to its timers yet.
  noteGap(performance.now());
  mark("report");
  writeFileSync(file, JSON.stringify({ gaps, marks, rssBytes: process.memoryUsage.rss() }));
};

// Shared with probe-after.mjs, which Pi may load through another module cache.
globalThis[Symbol.for("pi-mcp-threads bench")] = { mark };

setInterval(() => noteGap(performance.now()), HEARTBEAT_MS).unref();
process.on("exit", report);

export default function probe(pi) {
  pi.registerCommand("bench-report", { description: "Writes the report", handler: async () => report() });
  pi.on("session_start", () => mark("session_start begins"));
  pi.on("before_agent_start", () => mark("before_agent_start begins"));
  pi.on("session_shutdown", () => mark("session_shutdown begins"));
  mark("subject loads");
}
