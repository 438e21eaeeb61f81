/**
 * Owns: the time that Pi spends on loading an extension and running its factory, before its first paint.
 * Must not: wait for servers; Pi ends as soon as it is ready.
 */
import { rm } from "node:fs/promises";
import { type BenchHome, createBenchHome } from "../support/bench-home.ts";
import { startMeasured } from "../support/measured-pi.ts";
import type { ProbeReport } from "../support/probe-report.ts";
import type { Row, Scenario, ScenarioOptions } from "../support/scenario.ts";
import { loadVariants, type Variant } from "../support/variants.ts";

const DEFAULT_RUNS = 7;
const SERVERS = 20;
const EMPTY = "empty extension";

interface Case {
  name: string;
  variant: Variant;
  toolsPerServer: number;
  /** True for a first start after an installation: Pi's transform cache is empty and no server's tools are known. */
  first: boolean;
  ours?: string;
  targetMs?: number;
}

function casesOf(variant: Variant): Case[] {
  const common = { variant, toolsPerServer: 50, first: false };
  switch (variant.id) {
    case "none":
      return [{ ...common, name: EMPTY }];
    case "adapter":
      return [
        { ...common, name: "adapter, first", first: true, ours: "ours, first" },
        { ...common, name: "adapter, warm, 1,000 tools", ours: "ours, warm, 1,000 tools" },
      ];
    case "ours":
      return [
        { ...common, name: "ours, first", first: true, targetMs: 25 },
        { ...common, name: "ours, warm, 1,000 tools", targetMs: 8 },
        { ...common, name: "ours, warm, 2,000 tools", toolsPerServer: 100, targetMs: 15 },
      ];
    // The built-in MCP loads with Pi's own bundle; the start scenario measures its cost.
    case "builtin":
      return [];
  }
}

/** Starts Pi once; waits for the servers only if the client must learn their tools. */
async function loadOnce({ variant, first }: Case, home: BenchHome, learn: boolean): Promise<ProbeReport> {
  await home.reset({ cold: first });
  if (first) await rm(home.home.tmpDir, { recursive: true, force: true });
  await home.home.writeFile("../tmp/.keep", "");
  const pi = await startMeasured(variant, home);
  try {
    await pi.ready();
    if (learn && variant.entry && !first) {
      await home.allListed();
      // The client needs this time to store the tools.
      await pi.untilAge(2_500);
    }
    return await pi.stop();
  } finally {
    await pi.dispose();
  }
}

function rowsOf(
  { name, variant, targetMs, ours }: Case,
  probes: readonly ProbeReport[],
  compare: boolean,
): Row[] {
  const compared = compare && variant.id !== "none";
  const row = (metric: string, values: number[], target?: number): Row => ({
    case: name,
    metric,
    unit: "ms",
    values,
    ...(compared ? { baseline: EMPTY } : {}),
    ...(ours === undefined ? {} : { ours }),
    ...(compared && target !== undefined ? { target } : {}),
  });
  const load = probes.map(({ loadMs }) => loadMs);
  const stall = probes.map(({ longestStallLoadingMs }) => longestStallLoadingMs);
  return [row("load and factory", load, targetMs), row("longest stall meanwhile", stall)];
}

async function run(options: ScenarioOptions): Promise<Row[]> {
  const { runs = DEFAULT_RUNS, progress } = options;
  const prepared: { one: Case; home: BenchHome; probes: ProbeReport[] }[] = [];
  try {
    for (const one of (await loadVariants(options)).flatMap(casesOf)) {
      const { variant, toolsPerServer } = one;
      // The adapter connects an eager server to learn its tools, but not a lazy one.
      const lifecycle = variant.id === "adapter" ? "eager" : "lazy";
      const home = await createBenchHome(variant, { servers: SERVERS, toolsPerServer, lifecycle });
      prepared.push({ one, home, probes: [] });
      progress(`load: ${one.name} is prepared`);
      await loadOnce(one, home, true);
    }
    for (let index = 0; index < runs; index++) {
      progress(`load: run ${index + 1} of ${runs}`);
      for (const { one, home, probes } of prepared) probes.push(await loadOnce(one, home, false));
    }
  } finally {
    for (const { home } of prepared) await home.dispose();
  }
  const compare = options.vs.includes("none");
  return prepared.flatMap(({ one, probes }) => rowsOf(one, probes, compare));
}

export const load: Scenario = {
  name: "load",
  description: "loading the extension and running its factory, 20 servers configured",
  run,
};
