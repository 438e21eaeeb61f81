/**
 * Owns: a home for one variant with any number of bench servers, and the times of events in those servers.
 * Must not: start Pi.
 * Called by: the scenarios that run Pi.
 */
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createHome, type PiHome } from "../../test/support/pi-run.ts";
import { syntheticTools } from "./synthetic-tools.ts";
import type { Lifecycle, Variant } from "./variants.ts";

export const BENCH_SERVER = fileURLToPath(new URL("./bench-server.mjs", import.meta.url));
const POLL_MS = 20;
const LISTED_TIMEOUT_MS = 30_000;

export interface BenchHome {
  home: PiHome;
  /** Names of the configured servers: `bench1`, `bench2`, ... */
  servers: readonly string[];
  /** Deletes the data of earlier runs: the servers' logs and, for a cold start, the caches of all clients. */
  reset(options: { cold: boolean }): Promise<void>;
  /** Delays `initialize` of one server in later runs; 0 ends the delay. */
  delay(server: string, ms: number): Promise<void>;
  /** For each server: the time of its first entry `what`, in milliseconds since the epoch, or undefined. */
  seen(what: string): Promise<(number | undefined)[]>;
  /** Waits until every server has sent its tools and answers the time of the last one. Throws after 30 s. */
  allListed(): Promise<number>;
  dispose(): Promise<void>;
}

export interface HomeShape {
  servers: number;
  toolsPerServer: number;
  lifecycle: Lifecycle;
  skillsPerServer?: number;
  /** More keys for every server entry. */
  more?: Record<string, unknown>;
  /** `settings` of mcp.json. */
  settings?: Record<string, unknown>;
}

/** Files below the agent folder in which clients keep data between sessions. */
const CACHES = ["mcp-cache.json", "mcp-snapshots", "mcp-threads.log"];

export async function createBenchHome(variant: Variant, shape: HomeShape): Promise<BenchHome> {
  const home = await createHome({ settings: variant.settings });
  const names = Array.from({ length: shape.servers }, (_, index) => `bench${index + 1}`);
  const file = (kind: string, server: string): string => join(home.dir, `${kind}-${server}`);
  const mcpServers: Record<string, unknown> = {};
  for (const [index, name] of names.entries()) {
    const tools = syntheticTools(shape.toolsPerServer, index + 1);
    const env = {
      TOOLS_FILE: await home.writeFile(join("..", "tools", `${name}.json`), tools),
      SEEN_FILE: file("seen", name),
      DELAY_FILE: file("delay", name),
      ...(shape.skillsPerServer ? { SKILLS: String(shape.skillsPerServer) } : {}),
    };
    const description = `Server ${index + 1} of the benches, for issues, files and messages.`;
    const server = { command: process.execPath, args: [BENCH_SERVER], env, description };
    mcpServers[name] = { ...variant.entry?.(server, shape.lifecycle), ...shape.more };
  }
  if (variant.entry)
    await home.writeMcp({ mcpServers, ...(shape.settings ? { settings: shape.settings } : {}) });

  const seen = (what: string): Promise<(number | undefined)[]> =>
    Promise.all(names.map(async (name) => firstAt(await readIfThere(file("seen", name)), what)));
  return {
    home,
    servers: names,
    seen,
    reset: async ({ cold }) => {
      for (const name of names) await rm(file("seen", name), { force: true });
      if (!cold) return;
      for (const name of CACHES) await rm(join(home.agentDir, name), { recursive: true, force: true });
    },
    delay: async (server, ms) => {
      if (ms === 0) await rm(file("delay", server), { force: true });
      else await home.writeFile(join("..", `delay-${server}`), String(ms));
    },
    allListed: async () => {
      const deadlineMs = performance.now() + LISTED_TIMEOUT_MS;
      for (;;) {
        const times = await seen("listed");
        const known = times.filter((time) => time !== undefined);
        if (known.length === times.length) return Math.max(...known);
        if (performance.now() > deadlineMs) {
          throw new Error(`${known.length} of ${times.length} servers were asked for their tools in 30 s`);
        }
        await sleep(POLL_MS);
      }
    },
    dispose: () => home.dispose(),
  };
}

const readIfThere = async (path: string): Promise<string> => (existsSync(path) ? readFile(path, "utf8") : "");

function firstAt(log: string, what: string): number | undefined {
  const line = log.split("\n").find((entry) => entry.startsWith(`${what} `));
  return line === undefined ? undefined : Number(line.slice(what.length + 1));
}
