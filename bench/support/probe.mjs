/**
 * Owns: measuring Pi's main thread from inside Pi: a heartbeat, marks with CPU time and memory, a report file.
 * Must not: import anything but `node:` (Pi then loads it natively) or keep Pi alive.
 * Called by: Pi, as the extension before the one that is measured; probe-after.mjs is loaded right after it.
 *
 * The report goes to the file named by BENCH_REPORT when the process exits, and at each `/bench-report`.
 * `/bench-mark <name>` sets a mark, `/bench-mark gc <name>` after a garbage collection of the main thread.
 * Other marks come in pairs around the subject, as Pi loads extensions and calls handlers in order and awaits each.
 */
import { writeFileSync } from "node:fs";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const HEARTBEAT_MS = 2;
/** Shorter gaps are the rhythm of the timer itself. */
const NOTED_GAP_MS = 4;
const NOTED_GAPS = 20_000;
/** The heap is read this often, and after every stall: what a stall leaves behind is what was allocated in it. */
const HEAP_MS = 20;
/** Reading the memory of the process takes 0.2 ms. */
const RSS_MS = 100;

const gaps = [];
const marks = [];
let lastBeatMs = performance.now();
let lastCpuMs = 0;
let lastHeapMs = 0;
let lastRssMs = 0;
let peakHeapBytes = 0;
let peakRssBytes = 0;

const cpuMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Memory of this thread's heap and its buffers, without those of workers. */
const heapBytes = () => {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
};

const noteMemory = (nowMs) => {
  lastHeapMs = nowMs;
  peakHeapBytes = Math.max(peakHeapBytes, heapBytes());
  if (nowMs - lastRssMs < RSS_MS) return;
  lastRssMs = nowMs;
  peakRssBytes = Math.max(peakRssBytes, process.memoryUsage.rss());
};

/** Times are milliseconds since the process started. */
const noteGap = (nowMs) => {
  const ms = nowMs - lastBeatMs;
  const nowCpuMs = cpuMs();
  const noted = ms >= NOTED_GAP_MS;
  if (noted && gaps.length < NOTED_GAPS) gaps.push({ startMs: lastBeatMs, ms, cpuMs: nowCpuMs - lastCpuMs });
  if (noted || nowMs - lastHeapMs >= HEAP_MS) noteMemory(nowMs);
  lastBeatMs = nowMs;
  lastCpuMs = nowCpuMs;
};

const mark = (name) => marks.push({ name, atMs: performance.now(), cpuMs: cpuMs() });

/** A mark that separates two windows: the open gap ends here, and the peaks start again. */
const part = (name) => {
  const nowMs = performance.now();
  noteGap(nowMs);
  noteMemory(nowMs);
  const [heap, rss] = [heapBytes(), process.memoryUsage.rss()];
  const peaks = { peakHeapBytes: Math.max(peakHeapBytes, heap), peakRssBytes: Math.max(peakRssBytes, rss) };
  const memory = { heapBytes: heap, rssBytes: rss, ...peaks };
  marks.push({ name, atMs: performance.now(), cpuMs: cpuMs(), ...memory });
  peakHeapBytes = heap;
  peakRssBytes = rss;
};

const collectGarbage = () => {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
};

const report = () => {
  const file = process.env.BENCH_REPORT;
  if (file === undefined) return;
  // A gap that is still open counts: the thread has not come back to its timers yet.
  noteGap(performance.now());
  mark("report");
  writeFileSync(
    file,
    JSON.stringify({ gaps, marks, rssBytes: process.memoryUsage.rss(), originMs: performance.timeOrigin }),
  );
};

// Shared with probe-after.mjs, which Pi may load through another module cache.
globalThis[Symbol.for("pi-mcp-threads bench")] = { mark };

setInterval(() => noteGap(performance.now()), HEARTBEAT_MS).unref();
process.on("exit", report);

export default function probe(pi) {
  pi.registerCommand("bench-report", { description: "Writes the report", handler: async () => report() });
  pi.registerCommand("bench-mark", {
    description: "Sets a mark",
    handler: async (args) => {
      const [first, ...rest] = args.trim().split(" ");
      if (first === "gc") collectGarbage();
      part(first === "gc" ? rest.join(" ") : args.trim());
    },
  });
  pi.on("session_start", () => mark("session_start begins"));
  pi.on("before_agent_start", () => mark("before_agent_start begins"));
  pi.on("session_shutdown", () => mark("session_shutdown begins"));
  mark("subject loads");
}
