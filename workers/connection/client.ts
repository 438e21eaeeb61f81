/**
 * One live connection to a server through the MCP SDK: initialize, tool list, tool call. Knows nothing of
 * transports and lifecycles; a failed call leaves as a `ThreadsError` that says who, what and what to do.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type CallToolResult,
  ErrorCode,
  McpError,
  ResourceListChangedNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchemaValidator, jsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";
import { messageOf, ThreadsError } from "../../src/protocol/errors.ts";
import { boundJson } from "../../src/protocol/failure.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { CallProgress, TransportKind } from "../../src/protocol/types.ts";
import { type CachedTool, normalizeTools } from "../cache/tool.ts";
import type { ServerDefinition } from "./config/definition.ts";
import { readProgress } from "./read-progress.ts";
import { listFailure } from "./server-errors.ts";
import type { CloseTimes } from "./transports/stdio.ts";

const CLIENT_INFO = { name: "pi-mcp-threads", version: "0.1.0" };

export interface ConnectOptions {
  definition: ServerDefinition;
  cwd: string;
  /** `mcp-npx-cache.json`. */
  npxCacheFile: string;
  signal: AbortSignal;
  maxMessageBytes: number;
  onSpawn: (pid: number) => void;
  onExit: (pid: number) => void;
  onNote: (note: string) => void;
  /** Values of the resolved definition that no text may show. */
  onSecrets: (secrets: string[]) => void;
  /** The connection ended, whoever ended it. */
  onClosed: () => void;
  /** The server says that its tools or resources are no longer what they were. */
  onListChanged: () => void;
}

export interface Connection {
  transport: TransportKind;
  pid: number | undefined;
  instructions: string | undefined;
  /** Rejects with `ThreadsError`. */
  listTools(signal: AbortSignal): Promise<CachedTool[]>;
  callTool(call: CallRequest): Promise<CallToolResult>;
  /** Settles when the server answers; rejects when it does not within `timeoutMs`. */
  ping(timeoutMs: number): Promise<void>;
  /** One sentence on how the connection ended. */
  whyClosed(): string;
  /** Why the transport ended it, where it did so itself. */
  failure(): ThreadsError | undefined;
  close(times: CloseTimes): Promise<void>;
}

export interface CallRequest {
  tool: string;
  args: Record<string, unknown>;
  timeoutMs: number;
  signal: AbortSignal;
  onProgress: (progress: CallProgress) => void;
}

/** Results are shaped loosely (content/), so the SDK's schema compiler, ajv, is never started. */
const noValidator: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
};

/** `initialize` over the transport. The SDK closes the transport where it fails. */
export async function initialize(transport: Transport, options: ConnectOptions): Promise<Client> {
  const client = new Client(CLIENT_INFO, { capabilities: {}, jsonSchemaValidator: noValidator });
  client.onerror = (error) => options.onNote(error.message);
  await client.connect(transport, {
    signal: options.signal,
    timeout: options.definition.startupTimeoutMs ?? LIMITS.startupTimeoutMs,
  });
  client.onclose = options.onClosed;
  client.setNotificationHandler(ToolListChangedNotificationSchema, options.onListChanged);
  client.setNotificationHandler(ResourceListChangedNotificationSchema, options.onListChanged);
  return client;
}

/**
 * The SDK's own timeout. A server may answer an error of the same code, -32001, but not with the limit that
 * the SDK notes in `data`.
 */
export const isTimeout = (error: unknown): boolean =>
  error instanceof McpError &&
  error.code === ErrorCode.RequestTimeout &&
  typeof error.data === "object" &&
  error.data !== null &&
  ("timeout" in error.data || "maxTotalTimeout" in error.data);

/** Whether a connection has ended, as far as a failed request tells. */
const isClosed = (error: unknown): boolean =>
  error instanceof McpError && error.code === ErrorCode.ConnectionClosed;

/** What a connection is made of beside the SDK's client. */
export interface ConnectionParts {
  definition: ServerDefinition;
  transport: TransportKind;
  pid: number | undefined;
  close: (times: CloseTimes) => Promise<void>;
  /** One sentence for a call that was open when the connection ended. */
  whyClosed: () => string;
  /** Why the transport ended the connection, where it did so itself. */
  failure?: () => ThreadsError | undefined;
}

export function toConnection(client: Client, parts: ConnectionParts): Connection {
  return {
    transport: parts.transport,
    pid: parts.pid,
    instructions: client.getInstructions(),
    listTools: async (signal) => {
      try {
        return await listTools(client, parts.definition, signal);
      } catch (error) {
        throw listFailure(parts, { error, timedOut: isTimeout(error), closed: isClosed(error) });
      }
    },
    callTool: (call) => callTool(client, parts, call),
    ping: async (timeout) => {
      await client.ping({ timeout });
    },
    whyClosed: parts.whyClosed,
    failure: () => parts.failure?.(),
    close: parts.close,
  };
}

/**
 * All pages of `tools/list` (MCP 2025-11-25, server/utilities/pagination). Pages are read loosely, so that
 * one malformed tool costs the server only that tool. Ends at a repeated cursor and at the page limit.
 */
async function listTools(
  client: Client,
  definition: ServerDefinition,
  signal: AbortSignal,
): Promise<CachedTool[]> {
  if (!client.getServerCapabilities()?.tools) return [];
  const tools = new Map<string, CachedTool>();
  const seen = new Set<string>();
  let cursor: string | undefined;
  const limitMs = definition.startupTimeoutMs ?? LIMITS.startupTimeoutMs;
  const startedAt = performance.now();
  for (let page = 0; page < LIMITS.listPages && tools.size < LIMITS.toolsPerServer; page++) {
    const request = { method: "tools/list", ...(cursor === undefined ? {} : { params: { cursor } }) };
    // One limit for all pages: a server that pages for ever is as slow as one that never answers.
    const timeout = Math.max(1, limitMs - (performance.now() - startedAt));
    const result = await client.request(request, ResultSchema, { signal, timeout });
    for (const tool of normalizeTools(result.tools)) if (!tools.has(tool.name)) tools.set(tool.name, tool);
    const next = result.nextCursor;
    if (typeof next !== "string" || next === "" || seen.has(next)) break;
    seen.add(next);
    cursor = next;
  }
  return [...tools.values()].slice(0, LIMITS.toolsPerServer);
}

async function callTool(client: Client, parts: ConnectionParts, call: CallRequest): Promise<CallToolResult> {
  const { name } = parts.definition;
  try {
    const params = { name: call.tool, arguments: call.args };
    const result = await client.request({ method: "tools/call", params }, ResultSchema, {
      signal: call.signal,
      timeout: call.timeoutMs,
      resetTimeoutOnProgress: true,
      maxTotalTimeout: Math.max(LIMITS.requestCapMs, call.timeoutMs),
      onprogress: (params) => call.onProgress(readProgress(params)),
    });
    return result as CallToolResult;
  } catch (error) {
    // Servers answer -32000, the SDK's code for a closed connection, for errors of any kind.
    const answered = error instanceof McpError && client.transport !== undefined;
    throw callFailure(name, { parts, call, error, answered });
  }
}

interface FailedCall {
  parts: ConnectionParts;
  call: CallRequest;
  error: unknown;
  /** The error is the server's answer. */
  answered: boolean;
}

function callFailure(server: string, { parts, call, error, answered }: FailedCall): ThreadsError {
  if (call.signal.aborted) return new ThreadsError("cancelled", `${server}/${call.tool} was cancelled.`);
  // A transport that knows why says so itself.
  if (error instanceof ThreadsError) return error;
  const failure = parts.failure?.();
  if (failure) return failure;
  if (isTimeout(error)) {
    return new ThreadsError(
      "call_timeout",
      `${server}/${call.tool} gave no answer within ${call.timeoutMs / 1_000} s.`,
      {
        remedy:
          "It may still be running there. Set timeout (seconds) for the server in mcp.json if it needs longer.",
        data: { server, timeoutMs: call.timeoutMs },
      },
    );
  }
  if (error instanceof McpError && answered) {
    const text = error.message.replace(/^MCP error -?\d+: /, "");
    const data = error.data === undefined ? {} : { rpcData: boundJson(error.data) };
    return new ThreadsError("call_rejected", `${server} rejected ${call.tool}: ${text}`, {
      data: { server, rpcCode: error.code, ...data },
    });
  }
  return new ThreadsError(
    "server_died",
    `${server}/${call.tool} got no answer: ${diedReason(parts, error)}`,
    {
      remedy: "The call may have run. The next call connects again.",
      data: { server },
    },
  );
}

const diedReason = (parts: ConnectionParts, error: unknown): string =>
  error instanceof McpError ? parts.whyClosed() : `${messageOf(error)}.`;
