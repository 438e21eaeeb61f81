/**
 * One call of a server's tool, or of a tool that reads one of its resources. Every call of every caller comes through
 * here, so that here the user's yes is asked for. Connects first if it must, and never repeats a call, because a call that
 * failed may have run.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CachedTool } from "../../shared/listed.ts";
import { abortable } from "../../shared/pace/abort.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { CallRequest, Connection } from "../mcp/connection.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import type { Server, ServerTimings } from "./server.ts";
import { excludedTool, unknownTool } from "./status.ts";

type Asked = Omit<CallRequest, "timeoutMs">;

/** A call that can be sent. */
interface Ready {
  connection: Connection;
  tool: CachedTool;
  send(): Promise<CallToolResult>;
}

/**
 * Throws `ThreadsError`: `tool_excluded`, `unknown_tool`, `not_approved`, or what the connection or the call throws.
 * `onYes`: the user has let the call run, after a time that is not the server's.
 */
export function callTool(server: Server, asked: Asked, onYes?: () => void): Promise<CallToolResult> {
  return server.during(async () => {
    const { args, signal } = asked;
    const ready = await prepare(server, asked);
    const waiting = server.approvals.of({ definition: server.definition, tool: ready.tool, args, signal });
    if (!waiting) return await server.orAgain(ready, async () => (await prepare(server, asked)).send());
    const yes = await waiting;
    onYes?.();
    // A person takes time: the server may have ended or changed its tools, and an edit may have changed the rules.
    const checked = async (): Promise<Ready> => {
      const now = await prepare(server, asked);
      yes.check({ definition: server.definition, tool: now.tool });
      return now;
    };
    return await server.orAgain(await checked(), async () => (await checked()).send());
  });
}

/** Connects, and finds the tool as the connected server describes it. */
async function prepare(server: Server, asked: Asked): Promise<Ready> {
  const what = `${server.name}/${asked.tool}`;
  const connection = await abortable(server.connect("call"), asked.signal, what);
  const request = { ...asked, tool: server.nameOf(asked.tool), timeoutMs: callTimeoutMs(server.definition) };
  if (server.excludes(request.tool)) throw excludedTool(server.definition, request.tool);
  const find = () => server.tools?.find((known) => known.name === request.tool);
  if (!find() && connection.isFromMemory()) await abortable(server.relist(), asked.signal, what);
  const tool = find();
  if (tool)
    return { connection, tool, send: () => timed(server.timings, () => connection.callTool(request)) };
  const uri = await server.uriOf(request);
  if (uri === undefined) throw unknownTool(server.name, request.tool, server.tools);
  return {
    connection,
    // The tool is ours, and so is its hint: a resource is only read.
    tool: { name: request.tool, annotations: { readOnlyHint: true } },
    send: () => connection.readResource({ ...request, uri }),
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
