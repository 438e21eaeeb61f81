/** Owns: servers that answer a method with a text from a row, and helpers that build such texts. */
import type { Entry, Place } from "../support/row.ts";

export const nested = (depth: number, open = '{"a":', core = "1", close = "}"): string =>
  open.repeat(depth) + core + close.repeat(depth);

export const aTool = (name: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  name,
  description: `Does ${name.slice(0, 40)}.`,
  inputSchema: { type: "object" },
  ...more,
});

export const listOf = (tools: readonly unknown[], more: Record<string, unknown> = {}): string =>
  JSON.stringify({ tools, ...more });

export const helloOf = (more: Record<string, unknown> = {}): string =>
  JSON.stringify({
    protocolVersion: "2025-06-18",
    capabilities: { tools: { listChanged: true }, resources: {} },
    serverInfo: { name: "hostile", version: "1" },
    ...more,
  });

/**
 * Resolves with the entry of a server that answers these methods with these JSON texts; `error {...}` makes an error.
 */
export async function answering(place: Place, bodies: Record<string, string>): Promise<Entry> {
  const args: string[] = [];
  for (const [method, body] of Object.entries(bodies)) {
    const file = await place.file(`answer-${place.server}-${method.replaceAll("/", "-")}`, body);
    args.push(`${method}=${file}`);
  }
  return place.hostile("answers.mjs", ...args);
}

/** Returns the same server as a value for a row's `server`. */
export const answered =
  (bodies: Record<string, string>) =>
  (place: Place): Promise<Entry> =>
    answering(place, bodies);

/** Returns a server with these tools, as a value for a row's `server`. */
export const listing = (tools: readonly unknown[]): ((place: Place) => Promise<Entry>) =>
  answered({ "tools/list": listOf(tools) });
