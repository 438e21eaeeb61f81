/**
 * One live connection to a server: lists, calls, resources, prompts, in either era of the protocol. Knows nothing of
 * transports and lifecycles. A failed call rejects with a `ThreadsError` that says which server failed, why, and what to do.
 */
import { type CallToolResult, ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { asToolResult } from "../messages/contents.ts";
import { type CallClock, startCallClock } from "./call-clock.ts";
import type { CallRequest, Connection, ConnectionParts, ReadRequest } from "./connection.ts";
import { callFailure, listFailure, startLimitMs, urlRequiredFailure } from "./failures.ts";
import { listPrompts } from "./list-prompts.ts";
import { listResources } from "./list-resources.ts";
import { listTools } from "./list-tools.ts";
import type { Peer } from "./peer.ts";
import { readProgress } from "./progress.ts";
import { complete } from "./prompts.ts";
import { urlRequired } from "./questions.ts";
import { isClosed, isTimeout } from "./sdk-errors.ts";

/** Far more characters than any model is shown. */
const INSTRUCTIONS_CHARS = 100_000;

export function toConnection(peer: Peer, parts: ConnectionParts): Connection {
  const { capabilities } = peer;
  const listing = (signal: AbortSignal) => ({
    signal,
    limitMs: startLimitMs(parts.definition),
    onNote: parts.onNote,
  });
  return {
    transport: parts.transport,
    pid: parts.pid,
    protocol: peer.protocol,
    instructions: peer.instructions?.slice(0, INSTRUCTIONS_CHARS).toWellFormed(),
    listTools: async (signal) => {
      if (!capabilities.tools) return [];
      try {
        const tools = await listTools(peer.send, listing(signal));
        return peer.takeTools?.(tools) ?? tools;
      } catch (error) {
        throw listFailure(parts, { error, timedOut: isTimeout(error), closed: isClosed(error) });
      }
    },
    listResources: async (signal) =>
      capabilities.resources ? listResources(peer.send, listing(signal)) : { resources: [], templates: [] },
    listPrompts: async (signal) => (capabilities.prompts ? listPrompts(peer.send, listing(signal)) : []),
    callTool: (call) => callTool(peer, parts, call),
    readResource: (call) => readResource(peer, parts, call),
    getPrompt: async ({ prompt, args, signal }) => {
      const call = { tool: prompt, signal, timeoutMs: LIMITS.promptTimeoutMs, onProgress: () => undefined };
      const params = { name: prompt, arguments: args };
      const result = await requestFor(peer, parts, call, { method: "prompts/get", params });
      return asToolResult("prompt", result);
    },
    complete: (request) => complete(peer, request),
    ping: (timeoutMs) => peer.ping(timeoutMs),
    memory: () => peer.memory?.(),
    isStale: () => peer.isStale?.() ?? false,
    isFromMemory: () => peer.isFromMemory ?? false,
    whyClosed: parts.whyClosed,
    failure: () => parts.failure?.(),
    close: parts.close,
  };
}

/** The clock of one call. It ends the call like a timeout of the SDK (`isTimeout`). */
const clockOf = (
  { timeoutMs, signal }: Pick<CallRequest, "timeoutMs" | "signal">,
  { asks }: ConnectionParts,
): CallClock =>
  startCallClock({
    caller: signal,
    limitMs: timeoutMs,
    capMs: Math.max(LIMITS.requestCapMs, timeoutMs),
    pauses: asks,
    reason: () => McpError.fromError(ErrorCode.RequestTimeout, "Request timed out", { timeout: timeoutMs }),
  });

/** Sends the request of a call, hands its progress on, and rejects with a `ThreadsError`. */
async function requestFor(
  peer: Peer,
  parts: ConnectionParts,
  call: Omit<CallRequest, "args">,
  request: { method: string; params: Record<string, unknown> },
): Promise<Record<string, unknown>> {
  const { name } = parts.definition;
  const clock = clockOf(call, parts);
  const end = parts.asks?.callBegins();
  const { signal } = clock;
  try {
    return await peer.call({
      request,
      subject: `${name}/${call.tool}`,
      signal,
      onProgress: (params) => {
        clock.renew();
        call.onProgress(readProgress(params, parts.redact));
      },
    });
  } catch (error) {
    clock.stop();
    // Servers answer -32000, which is the SDK's code for a closed connection, for errors of any kind.
    const answered = error instanceof McpError && peer.isOpen;
    const outcome = await urlRequired(error, parts.asks, call.signal);
    if (outcome !== undefined && !call.signal.aborted) throw urlRequiredFailure(parts, call, outcome);
    throw callFailure(name, { parts, call, error, answered });
  } finally {
    clock.stop();
    end?.(signal.aborted || call.signal.aborted ? "given-up" : "done");
  }
}

async function callTool(peer: Peer, parts: ConnectionParts, call: CallRequest): Promise<CallToolResult> {
  const params = { name: call.tool, arguments: call.args };
  return (await requestFor(peer, parts, call, { method: "tools/call", params })) as CallToolResult;
}

/** Reads a resource (MCP 2025-11-25, server/resources) and answers like a tool that embeds the resource. */
async function readResource(peer: Peer, parts: ConnectionParts, call: ReadRequest): Promise<CallToolResult> {
  const params = { uri: call.uri };
  return asToolResult("resource", await requestFor(peer, parts, call, { method: "resources/read", params }));
}
