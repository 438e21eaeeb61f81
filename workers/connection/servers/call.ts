/**
 * One call of a server's tool, or of a tool that reads one of its resources. Connects first if it must, and never
 * repeats a call, because a call that failed may have run. Called by: server.ts.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { abortable } from "../../shared/pace/abort.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { exposureOf, namesInRules } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { CallRequest, Connection } from "../mcp/mcp.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { excludedTool, unknownTool } from "./errors.ts";
import type { ServerParts } from "./parts.ts";

/** The server as a call sees it. */
export interface CalledServer extends Pick<ServerParts, "name" | "definition" | "offer"> {
  /** Rejects with `ThreadsError`. */
  connect(): Promise<Connection>;
  /** Whether the current rules hide the tool. */
  excludes(tool: string): boolean;
}

/** Throws `ThreadsError`: `tool_excluded`, `unknown_tool`, or what the connection or the call throws. */
export async function callServer(
  server: CalledServer,
  asked: Omit<CallRequest, "timeoutMs">,
): Promise<CallToolResult> {
  const { name, offer } = server;
  const connection = await abortable(server.connect(), asked.signal, `${name}/${asked.tool}`);
  const request = { ...asked, tool: offer.nameOf(asked.tool) };
  if (server.excludes(request.tool)) throw excludedTool(server.definition(), request.tool);
  const timeoutMs = callTimeoutMs(server.definition());
  if (offer.tools?.some((tool) => tool.name === request.tool)) {
    return await connection.callTool({ ...request, timeoutMs });
  }
  const uri = await offer.uriOf(request);
  if (uri === undefined) throw unknownTool(name, request.tool, offer.tools);
  return await connection.readResource({ ...request, uri, timeoutMs });
}

/** How long one call may go without an answer or progress, in milliseconds. */
export const callTimeoutMs = ({ requestTimeoutMs }: Pick<ServerDefinition, "requestTimeoutMs">): number =>
  Math.min(requestTimeoutMs ?? LIMITS.requestTimeoutMs, LIMITS.longestTimerMs);

/** Whether the rules hide the tool of this name, also from a caller that still knows it. */
export function isExcluded(
  definition: ServerDefinition,
  tool: string,
  { toolPrefix, directTools }: Pick<Settings, "toolPrefix" | "directTools">,
): boolean {
  const names = namesInRules(definition.name, tool, definition.toolPrefix ?? toolPrefix);
  return exposureOf(tool, definition, directTools, names) === "hidden";
}
