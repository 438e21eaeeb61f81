/**
 * Owns: the measurement of Pi's main thread from inside Pi: a heartbeat, marks with CPU time and memory, a report file.
 * Must not: import anything but `node:` modules (so that Pi loads the file natively) or keep Pi alive.
 * Called by: Pi, as the extension before the measured one; Pi loads probe-after.mjs right after the measured one.
 *
 * The report goes to the file in BENCH_REPORT at the exit of the process and at each `/bench-report`.
 * `/bench-mark <name>` sets a mark; `/bench-mark gc <name>` first collects the garbage of the main thread.
 * Other marks come in pairs around the subject, because Pi loads extensions in order, calls their handlers in order and
 * awaits each.
 */
import { writeFileSync } from "node:fs";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

const HEARTBEAT_MS = 2;
/** The timer itself causes shorter gaps. */
const NOTED_GAP_MS = 4;
const NOTED_GAPS = 20_000;
/** The heap is read this often and after every stall, so that memory allocated during a stall counts. */
const HEAP_MS = 20;
/** The memory of the process is read this often only, because each read takes 0.2 ms. */
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

/** CPU time of all threads of the process. */
const processCpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** Memory of this thread's heap and buffers, without those of workers. */
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

/** Times are in milliseconds since the start of the process. */
const noteGap = (nowMs) => {
  const ms = nowMs - lastBeatMs;
  const nowCpuMs = cpuMs();
  const noted = ms >= NOTED_GAP_MS;
  if (noted && gaps.length < NOTED_GAPS) gaps.push({ startMs: lastBeatMs, ms, cpuMs: nowCpuMs - lastCpuMs });
  if (noted || nowMs - lastHeapMs >= HEAP_MS) noteMemory(nowMs);
  lastBeatMs = nowMs;
  lastCpuMs = nowCpuMs;
};

const times = () => ({ atMs: performance.now(), cpuMs: cpuMs(), processCpuMs: processCpuMs() });
const mark = (name) => marks.push({ name, ...times() });

/** Sets a mark between two windows: the open gap ends here, and the peaks start again. */
const part = (name) => {
  const nowMs = performance.now();
  noteGap(nowMs);
  noteMemory(nowMs);
  const [heap, rss] = [heapBytes(), process.memoryUsage.rss()];
  const peaks = { peakHeapBytes: Math.max(peakHeapBytes, heap), peakRssBytes: Math.max(peakRssBytes, rss) };
  const memory = { heapBytes: heap, rssBytes: rss, ...peaks };
  marks.push({ name, ...times(), ...memory });
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
  // The open gap counts too: the thread has not returned to its timers yet.
  noteGap(performance.now());
  mark("report");
  writeFileSync(
    file,
    JSON.stringify({ gaps, marks, rssBytes: process.memoryUsage.rss(), originMs: performance.timeOrigin }),
  );
};

// probe-after.mjs needs `mark`, and Pi may load that file through another module cache.
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
