/**
 * One call of a server's tool, or of a tool that reads one of its resources. Every call of every caller comes through
 * here, so that here the user's yes is asked for. Connects first if it must, and never repeats a call, because a call that
 * failed may have run. Called by: server.ts.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import { abortable } from "../../shared/pace/abort.ts";
import type { Approvals } from "../approval/approval.ts";
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
  approvals: Pick<Approvals, "of">;
}

export interface AskedOfServer extends Omit<CallRequest, "timeoutMs"> {
  /** The user has let the call run, after a time that is not the server's. */
  onYes?: () => void;
}

/** A call that can be sent. */
interface Ready {
  tool: CachedTool;
  send(): Promise<CallToolResult>;
}

/** Throws `ThreadsError`: `tool_excluded`, `unknown_tool`, `not_approved`, or what the connection or the call throws. */
export async function callServer(
  server: CalledServer,
  { onYes, ...asked }: AskedOfServer,
): Promise<CallToolResult> {
  const { args, signal } = asked;
  const ready = await prepare(server, asked);
  const waiting = server.approvals.of({ definition: server.definition(), tool: ready.tool, args, signal });
  if (!waiting) return await ready.send();
  const yes = await waiting;
  onYes?.();
  // A person takes time: the server may have ended or changed its tools, and an edit may have changed the rules.
  const now = await prepare(server, asked);
  yes.check({ definition: server.definition(), tool: now.tool });
  return await now.send();
}

/** Connects, and finds the tool as the connected server describes it. */
async function prepare(server: CalledServer, asked: Omit<CallRequest, "timeoutMs">): Promise<Ready> {
  const { name, offer } = server;
  const connection = await abortable(server.connect(), asked.signal, `${name}/${asked.tool}`);
  const request = { ...asked, tool: offer.nameOf(asked.tool) };
  if (server.excludes(request.tool)) throw excludedTool(server.definition(), request.tool);
  const timeoutMs = callTimeoutMs(server.definition());
  const tool = offer.tools?.find((known) => known.name === request.tool);
  if (tool) return { tool, send: () => connection.callTool({ ...request, timeoutMs }) };
  const uri = await offer.uriOf(request);
  if (uri === undefined) throw unknownTool(name, request.tool, offer.tools);
  return {
    // The tool is ours, and so is its hint: a resource is only read.
    tool: { name: request.tool, annotations: { readOnlyHint: true } },
    send: () => connection.readResource({ ...request, uri, timeoutMs }),
  };
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
