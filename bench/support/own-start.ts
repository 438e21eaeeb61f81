/**
 * Owns: the time that a stdio server needs for its own start: spawn, `initialize` and `tools/list` with the SDK's
 * client alone.
 * Must not: run during another measurement.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { median } from "./stats.ts";

const STARTS = 5;

export interface StdioEntry {
  command: string;
  args: string[];
  env: Record<string, string>;
}

async function startOnce(entry: StdioEntry): Promise<number> {
  const client = new Client({ name: "bench", version: "1.0.0" });
  const askedMs = performance.now();
  await client.connect(new StdioClientTransport(entry));
  await client.listTools();
  const ms = performance.now() - askedMs;
  await client.close();
  return ms;
}

/** Median of five starts, in milliseconds. */
export async function ownStartMs(entry: StdioEntry): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < STARTS; index++) times.push(await startOnce(entry));
  return median(times);
}
