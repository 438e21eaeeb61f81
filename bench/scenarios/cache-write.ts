/**
 * Owns: several processes that store entries in one metadata cache at the same time: the number of entries that
 * survive, and the time of a write.
 * Must not: run Pi; the processes run the clients' own code for writes.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ensureAdapter } from "../../test/support/adapter.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { median, percentile } from "../support/stats.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const WRITER = join(import.meta.dirname, "..", "support", "cache-writer.ts");
const DEFAULT_RUNS = 5;
const WRITERS = 4;
const ENTRIES = 20;
/** Every process has loaded its modules within this time. */
const START_AFTER_MS = 1_500;

interface Client {
  id: "ours" | "adapter";
  label: string;
  modulePath: string;
}

interface Sample {
  kept: number;
  writesMs: number[];
}

async function measureOnce({ id, modulePath }: Client): Promise<Sample> {
  const agentDir = await mkdtemp(join(tmpdir(), "pmt-cache-"));
  const cacheFile = join(agentDir, "mcp-cache.json");
  const startAt = Date.now() + START_AFTER_MS;
  const env = { ...process.env, PI_CODING_AGENT_DIR: agentDir };
  try {
    const outputs = await Promise.all(
      Array.from({ length: WRITERS }, (_, writer) => {
        const args = [WRITER, id, modulePath, cacheFile, writer, ENTRIES, startAt].map(String);
        return promisify(execFile)(process.execPath, args, { env });
      }),
    );
    const cache = JSON.parse(await readFile(cacheFile, "utf8")) as { servers: Record<string, unknown> };
    return {
      kept: Object.keys(cache.servers).length,
      writesMs: outputs.flatMap(({ stdout }) => JSON.parse(stdout) as number[]),
    };
  } finally {
    await rm(agentDir, { recursive: true, force: true });
  }
}

function rowsOf({ id, label }: Client, samples: readonly Sample[]): Row[] {
  const row = (metric: string, unit: Row["unit"], pick: (sample: Sample) => number): Row => ({
    case: label,
    metric,
    unit,
    values: samples.map(pick),
    ...(id === "ours" ? {} : { ours: "ours" }),
  });
  const kept = row(`kept of ${WRITERS * ENTRIES}`, "entries", (sample) => sample.kept);
  return [
    id === "ours" ? { ...kept, target: WRITERS * ENTRIES, atLeast: true } : kept,
    row("one write, p50", "ms", ({ writesMs }) => median(writesMs)),
    row("one write, p99", "ms", ({ writesMs }) => percentile(writesMs, 0.99)),
  ];
}

async function clientsFor({ vs, progress }: ScenarioOptions): Promise<Client[]> {
  const modulePath = join(ROOT, "workers", "cache", "metadata", "metadata.ts");
  const ours: Client = { id: "ours", label: "ours", modulePath };
  if (!vs.includes("adapter")) return [ours];
  try {
    const path = join(await ensureAdapter(), "dist", "metadata-cache.js");
    return [{ id: "adapter", label: "pi-mcp-adapter", modulePath: path }, ours];
  } catch (error) {
    progress(`pi-mcp-adapter is left out, it could not be fetched: ${String(error)}`);
    return [ours];
  }
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const samples = new Map((await clientsFor(options)).map((client) => [client, [] as Sample[]]));
  for (let index = 0; index < runs; index++) {
    progress(`cache-write: run ${index + 1} of ${runs}`);
    for (const [client, list] of samples) list.push(await measureOnce(client));
  }
  const rows = [...samples].flatMap(([client, list]) => rowsOf(client, list));
  const none: Row = {
    case: "built-in MCP",
    metric: "kept",
    unit: "entries",
    values: [],
    note: "it has no cache",
  };
  return options.vs.includes("builtin") ? [none, ...rows] : rows;
}

export const cacheWrite: Scenario = {
  name: "cache-write",
  description: `${WRITERS} processes that write ${ENTRIES} entries of 50 tools each into one metadata cache`,
  run,
};
