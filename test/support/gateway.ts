/**
 * Owns: a real gateway from npm (mcp-hub) with servers of its own behind one address, as a team runs it: start, restart at
 * the same address, and other servers while it runs.
 * Must not: prepare Pi.
 * Called by: the tests of a gateway and the bench `gateway`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";

const PROGRAM = join(import.meta.dirname, "..", "..", "node_modules", "mcp-hub", "dist", "cli.js");
const POLL_MS = 50;
/** This limit ends hangs only: the gateway starts all of its servers before it answers. */
const READY_TIMEOUT_MS = 90_000;

export interface Gateway {
  /** Where clients of MCP connect. */
  url: string;
  /** The gateway's own process. Its servers are children of it. */
  readonly pid: number;
  /** Ends the gateway as a crash does, with its servers. */
  kill(): Promise<void>;
  /** Starts the gateway at the same address, after `kill`. */
  start(): Promise<void>;
  /** Replaces its servers, as its administrator does. It tells its clients by `notifications/tools/list_changed`. */
  write(mcpServers: Record<string, unknown>): Promise<void>;
}

/** `folder`: for the gateway's files. `mcpServers`: entries of servers over stdio by name. Resolves once all have been started. */
export async function startGateway(folder: string, mcpServers: Record<string, unknown>): Promise<Gateway> {
  // The gateway asks a list of servers on the web for news at its start, and waits for it, unless it has a fresh copy.
  const known = join(folder, "mcp-hub", "cache");
  await mkdir(known, { recursive: true });
  const registry = { servers: [{ id: "none" }] };
  await writeFile(join(known, "registry.json"), JSON.stringify({ registry, lastFetchedAt: Date.now() }));
  const config = join(folder, "gateway.json");
  const write = (servers: Record<string, unknown>): Promise<void> =>
    writeFile(config, JSON.stringify({ mcpServers: servers }));
  await write(mcpServers);
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const folders = Object.fromEntries(
    ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME"].map((name) => [name, folder]),
  );
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    const started = spawn(
      process.execPath,
      [PROGRAM, "--port", String(port), "--config", config, "--watch"],
      {
        // Of its own group, so that its servers end with it.
        detached: true,
        stdio: "ignore",
        env: { PATH: process.env.PATH, ...folders },
      },
    );
    child = started;
    const until = performance.now() + READY_TIMEOUT_MS;
    while ((await stateOf(origin)) !== "ready") {
      if (started.exitCode !== null || performance.now() > until)
        throw new Error("the gateway does not start");
      await sleep(POLL_MS);
    }
  };
  const kill = async (): Promise<void> => {
    const ended = child;
    child = undefined;
    if (ended?.pid === undefined || ended.exitCode !== null || ended.signalCode !== null) return;
    const exited = once(ended, "exit");
    process.kill(-ended.pid, "SIGKILL");
    await exited;
  };
  await start();
  return {
    url: `${origin}/mcp`,
    get pid() {
      return child?.pid ?? Number.NaN;
    },
    kill,
    start,
    write,
  };
}

/** What the gateway says of itself; undefined while nothing answers. */
async function stateOf(origin: string): Promise<string | undefined> {
  try {
    const { state } = (await (await fetch(`${origin}/api/health`)).json()) as { state: string };
    return state;
  } catch {
    return undefined;
  }
}
