/**
 * Owns: the time of a bench server from its spawn to the answer of a first call, for a client that costs next to nothing:
 * what no client can save.
 * Must not: measure a client.
 * Called by: the scenario `first-call`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { BENCH_SERVER } from "./bench-home.ts";

const line = (id: number | undefined, method: string, params: object): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;

/** Milliseconds. */
export async function programAloneMs(): Promise<number> {
  const spawnedMs = performance.now();
  const child = spawn(process.execPath, [BENCH_SERVER], { stdio: ["pipe", "pipe", "ignore"] });
  const lines = createInterface({ input: child.stdout });
  const client = {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "bench", version: "1" },
  };
  child.stdin.write(line(1, "initialize", client));
  await once(lines, "line");
  child.stdin.write(line(undefined, "notifications/initialized", {}));
  child.stdin.write(line(2, "tools/call", { name: "echo", arguments: { text: "alone" } }));
  await once(lines, "line");
  const answeredMs = performance.now();
  child.stdin.end();
  await once(child, "exit");
  return answeredMs - spawnedMs;
}
