/**
 * One call of a server's tool, or of a tool that reads one of its resources. Every call of every caller comes through
 * here, so that here the user's yes is asked for. Connects first if it must, and never repeats a call, because a call that
 * failed may have run. Called by: server.ts.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import { abortable } from "../../shared/pace/abort.ts";
import type { Approvals } from "../approval/approval.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { exposureOf, namesInRules } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { CallRequest, Connection } from "../mcp/connection.ts";
import { type CallToolResult, MustNegotiate } from "../mcp/wire/wire.ts";
import { excludedTool, unknownTool } from "./errors.ts";
import type { ServerParts, ServerTimings } from "./parts.ts";

/** The server as a call sees it. */
export interface CalledServer
  extends Pick<ServerParts, "name" | "definition" | "offer" | "timings">,
    RememberingServer {
  /** Rejects with `ThreadsError`. */
  connect(): Promise<Connection>;
  /** Whether the current rules hide the tool. */
  excludes(tool: string): boolean;
  approvals: Pick<Approvals, "of">;
}

/** A server whose connection may rely on what an earlier session remembered. */
export interface RememberingServer {
  /** A request over the connection failed before the server had answered anything. `isWrong`: it is of another era. */
  distrust(connection: Connection, isWrong: boolean): void;
  /** Lists the tools of the open connection again. */
  relist(): Promise<void>;
}

export interface AskedOfServer extends Omit<CallRequest, "timeoutMs"> {
  /** The user has let the call run, after a time that is not the server's. */
  onYes?: () => void;
}

/** A call that can be sent. */
interface Ready {
  connection: Connection;
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
  const again = (): Promise<Ready> => prepare(server, asked);
  if (!waiting) return await orAgain(server, ready, async () => (await again()).send());
  const yes = await waiting;
  onYes?.();
  // A person takes time: the server may have ended or changed its tools, and an edit may have changed the rules.
  const checked = async (): Promise<Ready> => {
    const now = await again();
    yes.check({ definition: server.definition(), tool: now.tool });
    return now;
  };
  return await orAgain(server, await checked(), async () => (await checked()).send());
}

/**
 * Sends what is ready. If the server is not the one that was remembered, nothing has run, and the request is sent once more
 * over a connection that asks the server first.
 */
export async function orAgain<T>(
  server: Pick<RememberingServer, "distrust">,
  { connection, send }: { connection: Connection; send: () => Promise<T> },
  again: () => Promise<T>,
): Promise<T> {
  try {
    return await send();
  } catch (error) {
    const isWrong = error instanceof MustNegotiate;
    const isPersons = error instanceof ThreadsError && PERSONS.has(error.code);
    if (isWrong || (connection.isFromMemory() && !isPersons)) server.distrust(connection, isWrong);
    if (!isWrong) throw error;
    return await again();
  }
}

/** Failures that say nothing about the server: the user gave the call up, or has to sign in. */
const PERSONS = new Set(["cancelled", "needs_auth"]);

/** Connects, and finds the tool as the connected server describes it. */
async function prepare(server: CalledServer, asked: Omit<CallRequest, "timeoutMs">): Promise<Ready> {
  const { name, offer } = server;
  const connection = await abortable(server.connect(), asked.signal, `${name}/${asked.tool}`);
  const request = { ...asked, tool: offer.nameOf(asked.tool) };
  if (server.excludes(request.tool)) throw excludedTool(server.definition(), request.tool);
  const timeoutMs = callTimeoutMs(server.definition());
  const find = () => offer.tools?.find((known) => known.name === request.tool);
  const isOld = find() === undefined && connection.isFromMemory();
  if (isOld) await abortable(server.relist(), asked.signal, `${name}/${asked.tool}`);
  const tool = find();
  const { timings } = server;
  if (tool) {
    const send = () => timed(timings, () => connection.callTool({ ...request, timeoutMs }));
    return { connection, tool, send };
  }
  const uri = await offer.uriOf(request);
  if (uri === undefined) throw unknownTool(name, request.tool, offer.tools);
  return {
    connection,
    // The tool is ours, and so is its hint: a resource is only read.
    tool: { name: request.tool, annotations: { readOnlyHint: true } },
    send: () => connection.readResource({ ...request, uri, timeoutMs }),
  };
}

/** Runs the call, and notes how long the server took. */
async function timed<T>(timings: ServerTimings, call: () => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  try {
    const result = await call();
    timings.slowestCallMs = Math.max(timings.slowestCallMs, Math.round(performance.now() - startedAt));
    return result;
  } catch (error) {
    if (error instanceof ThreadsError && error.code === "call_timeout") timings.lateCalls++;
    throw error;
  }
}

/** How long one call may go without an answer or progress, in milliseconds. */
export const callTimeoutMs = ({ requestTimeoutMs }: Pick<ServerDefinition, "requestTimeoutMs">): number =>
  requestTimeoutMs ?? LIMITS.requestTimeoutMs;

/** Whether the rules hide the tool of this name, also from a caller that still knows it. */
export function isExcluded(
  definition: ServerDefinition,
  tool: string,
  { toolPrefix, directTools }: Pick<Settings, "toolPrefix" | "directTools">,
): boolean {
  const names = namesInRules(definition.name, tool, definition.toolPrefix ?? toolPrefix);
  return exposureOf(tool, definition, directTools, names) === "hidden";
}
