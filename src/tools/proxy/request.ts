/**
 * A request to the proxy tool: its parameters, and the servers and tools that they name. A request that cannot be met
 * throws a `Refusal`, whose message the model reads.
 */

import type { CatalogTool } from "../../catalog/catalog.ts";
import {
  findServer,
  nearestTools,
  resolveTool,
  serverNames,
  serverOfName,
} from "../../catalog/search/search.ts";
import type { PiToolContext, ToolUpdate } from "../../pi/tools.ts";
import { nameLine, noServer, stateNote } from "../../report/search.ts";
import { plainToolName } from "../../shared/naming.ts";
import { fromWireError } from "../../shared/protocol/errors.ts";
import { parseArguments } from "../../shared/text/reading.ts";
import type { ProxyHost } from "./host.ts";

export interface ProxyCall {
  callId: string;
  params: Record<string, unknown>;
  signal: AbortSignal | undefined;
  onUpdate: ToolUpdate | undefined;
  ctx: PiToolContext;
}

export class Refusal extends Error {}

/** The trimmed text of a parameter; undefined if it is empty or not a string. */
export const text = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;

/** `args`: an object, or the JSON of an object. Throws a Refusal. */
export function parseArgs(args: unknown): Record<string, unknown> {
  let value = args;
  if (typeof value === "string") {
    try {
      value = value.trim() === "" ? {} : parseArguments(value);
    } catch (error) {
      const what = error instanceof SyntaxError ? "is not valid JSON" : "cannot be sent";
      throw new Refusal(`args ${what}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw new Refusal("args must be a JSON object.");
  return value as Record<string, unknown>;
}

/** Answers the server's name as it is configured. Throws a Refusal. */
export function knownServer(host: ProxyHost, written: string): string {
  const found = findServer(written, serverNames(host));
  if (found !== undefined) return found;
  throw new Refusal(noServer(written, serverNames(host), host.catalog()));
}

/** Waits for servers only if the tool is not known yet. Throws a Refusal with the nearest names. */
export async function toolNamed(
  host: ProxyHost,
  name: string,
  server: string | undefined,
  signal: AbortSignal | undefined,
): Promise<CatalogTool> {
  let resolution = resolveTool(host.catalog(), name, server);
  if (resolution.kind === "unknown") {
    await host.settle(signal, server === undefined ? undefined : [server]);
    resolution = resolveTool(host.catalog(), name, server);
  }
  if (resolution.kind === "tool") return resolution.tool;
  if (resolution.kind === "several") {
    const names = resolution.tools.map((tool) => tool.name);
    const [line] = nameLine(`${name} is the name of several tools`, names);
    throw new Refusal(`${line}. Use one of these names.`);
  }
  const error = await host.whyMissing(server === undefined ? name : plainToolName(server, name));
  if (error) throw fromWireError(error);
  const owner = server ?? serverOfName(name, serverNames(host));
  const nearest = await nearestTools(host.catalog(), name, server);
  throw new Refusal(
    [
      `No tool named ${name}.`,
      ...nameLine(
        "Nearest",
        nearest.map((tool) => tool.name),
      ),
      ...stateNote(host.servers().find((status) => status.name === owner)),
    ].join("\n"),
  );
}
