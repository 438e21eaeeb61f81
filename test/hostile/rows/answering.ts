/** Owns: servers that answer a method with a text from a row, and the parts of such texts. */
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

/** The entry of a server that answers these methods with these JSON texts; `error {...}` makes one an error. */
export async function answering(place: Place, bodies: Record<string, string>): Promise<Entry> {
  const args: string[] = [];
  for (const [method, body] of Object.entries(bodies)) {
    const file = await place.file(`answer-${place.server}-${method.replaceAll("/", "-")}`, body);
    args.push(`${method}=${file}`);
  }
  return place.hostile("answers.mjs", ...args);
}

/** The same as a key of a row. */
export const answered =
  (bodies: Record<string, string>) =>
  (place: Place): Promise<Entry> =>
    answering(place, bodies);

/** A server with these tools. */
export const listing = (tools: readonly unknown[]): ((place: Place) => Promise<Entry>) =>
  answered({ "tools/list": listOf(tools) });
