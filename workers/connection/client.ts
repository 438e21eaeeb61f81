/**
 * One live connection to a server through the MCP SDK: initialize, lists, calls. Knows nothing of
 * transports and lifecycles; a failed call leaves as a `ThreadsError` that says who, what and what to do.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type CallToolResult,
  ErrorCode,
  McpError,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchemaValidator, jsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";
import { messageOf, ThreadsError } from "../../src/protocol/errors.ts";
import { boundJson } from "../../src/protocol/failure.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { CallProgress, TransportKind } from "../../src/protocol/types.ts";
import type { CachedPrompt } from "../cache/prompt.ts";
import { type CachedTool, normalizeTools, unboundedTools } from "../cache/tool.ts";
import type { ServerDefinition } from "./config/definition.ts";
import { listPages, type SendRequest } from "./list-pages.ts";
import { listPrompts } from "./prompts.ts";
import { readProgress } from "./read-progress.ts";
import { boundText, type Redactor, type Secrets } from "./redact.ts";
import { type ListedResources, listResources } from "./resources/list.ts";
import { listFailure, startLimitMs } from "./server-errors.ts";
import type { CloseTimes } from "./transports/stdio.ts";

const NOTED_TOOLS = 20;
const CLIENT_INFO = { name: "pi-mcp-threads", version: "0.1.0" };

const LOG_MESSAGE = "notifications/message";

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
  /** `params` of a logging notification, as the server sent them. */
  onLogMessage: (params: unknown) => void;
  /** Values of the resolved definition that no text may show. */
  onSecrets: (secrets: Secrets) => void;
  /** Takes them out of a text. Before the text is cut: of a secret cut in two neither half would be found. */
  redact: Redactor;
  /** The connection ended, whoever ended it. */
  onClosed: () => void;
  /** The server says that its tools, resources or prompts are no longer what they were. */
  onListChanged: () => void;
}

export interface Connection {
  transport: TransportKind;
  pid: number | undefined;
  instructions: string | undefined;
  /** Rejects with `ThreadsError`. */
  listTools(signal: AbortSignal): Promise<CachedTool[]>;
  /** Never rejects. */
  listResources(signal: AbortSignal): Promise<ListedResources>;
  /** Never rejects; undefined where they could not be listed. */
  listPrompts(signal: AbortSignal): Promise<CachedPrompt[] | undefined>;
  callTool(call: CallRequest): Promise<CallToolResult>;
  readResource(call: ReadRequest): Promise<CallToolResult>;
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

/** `tool`: the one that reads it. */
export type ReadRequest = Omit<CallRequest, "args"> & { uri: string };

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
    timeout: startLimitMs(options.definition),
  });
  client.onclose = options.onClosed;
  askForLog(client, options);
  client.setNotificationHandler(ToolListChangedNotificationSchema, options.onListChanged);
  client.setNotificationHandler(ResourceListChangedNotificationSchema, options.onListChanged);
  client.setNotificationHandler(PromptListChangedNotificationSchema, options.onListChanged);
  return client;
}

/**
 * The server's log messages, of any shape: the SDK's own handler would refuse one of an unknown level. Asks for
 * a level only where the server can be asked; none that answers no, or not at all, is worse for it.
 */
function askForLog(client: Client, { definition, onNote, onLogMessage }: ConnectOptions): void {
  client.fallbackNotificationHandler = async ({ method, params }) => {
    if (method === LOG_MESSAGE) onLogMessage(params);
  };
  if (!client.getServerCapabilities()?.logging) return;
  client.setLoggingLevel(definition.debug ? "debug" : "info").catch((error: unknown) => {
    if (!isClosed(error)) onNote(`does not take a log level: ${messageOf(error)}`);
  });
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
  onNote: (note: string) => void;
  definition: ServerDefinition;
  redact: Redactor;
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
        return await listTools(client, parts, signal);
      } catch (error) {
        throw listFailure(parts, { error, timedOut: isTimeout(error), closed: isClosed(error) });
      }
    },
    listResources: async (signal) => {
      if (!client.getServerCapabilities()?.resources) return { resources: [], templates: [] };
      const { definition, onNote } = parts;
      return listResources(senderOf(client), { signal, limitMs: startLimitMs(definition), onNote });
    },
    listPrompts: async (signal) => {
      if (!client.getServerCapabilities()?.prompts) return [];
      const { definition, onNote } = parts;
      return listPrompts(senderOf(client), { signal, limitMs: startLimitMs(definition), onNote });
    },
    callTool: (call) => callTool(client, parts, call),
    readResource: (call) => readResource(client, parts, call),
    ping: async (timeout) => {
      await client.ping({ timeout });
    },
    whyClosed: parts.whyClosed,
    failure: () => parts.failure?.(),
    close: parts.close,
  };
}

const senderOf =
  (client: Client): SendRequest =>
  (request, options) =>
    client.request(request, ResultSchema, options);

/** One malformed tool costs the server only that tool. */
async function listTools(
  client: Client,
  { definition, onNote }: ConnectionParts,
  signal: AbortSignal,
): Promise<CachedTool[]> {
  if (!client.getServerCapabilities()?.tools) return [];
  const tools = new Map<string, CachedTool>();
  const unbounded: string[] = [];
  const onPage = (result: Record<string, unknown>): boolean => {
    for (const tool of normalizeTools(result.tools)) if (!tools.has(tool.name)) tools.set(tool.name, tool);
    unbounded.push(...unboundedTools(result.tools));
    return tools.size < LIMITS.toolsPerServer;
  };
  await listPages(senderOf(client), {
    method: "tools/list",
    limitMs: startLimitMs(definition),
    signal,
    onPage,
  });
  if (unbounded.length > 0) {
    onNote(`schemas left out, too deep or too big: ${unbounded.slice(0, NOTED_TOOLS).join(", ")}`);
  }
  return [...tools.values()].slice(0, LIMITS.toolsPerServer);
}

/** The request that a call stands for, with its progress and its failures. */
async function requestFor(
  client: Client,
  parts: ConnectionParts,
  call: Omit<CallRequest, "args">,
  request: { method: string; params: Record<string, unknown> },
): Promise<Record<string, unknown>> {
  try {
    return await client.request(request, ResultSchema, {
      signal: call.signal,
      timeout: call.timeoutMs,
      resetTimeoutOnProgress: true,
      maxTotalTimeout: Math.max(LIMITS.requestCapMs, call.timeoutMs),
      onprogress: (params) => call.onProgress(readProgress(params, parts.redact)),
    });
  } catch (error) {
    // Servers answer -32000, the SDK's code for a closed connection, for errors of any kind.
    const answered = error instanceof McpError && client.transport !== undefined;
    throw callFailure(parts.definition.name, { parts, call, error, answered });
  }
}

async function callTool(client: Client, parts: ConnectionParts, call: CallRequest): Promise<CallToolResult> {
  const params = { name: call.tool, arguments: call.args };
  return (await requestFor(client, parts, call, { method: "tools/call", params })) as CallToolResult;
}

/** MCP 2025-11-25, server/resources, reading: what it holds, as a tool that embeds it would answer. */
async function readResource(
  client: Client,
  parts: ConnectionParts,
  call: ReadRequest,
): Promise<CallToolResult> {
  const params = { uri: call.uri };
  const { contents } = await requestFor(client, parts, call, { method: "resources/read", params });
  const blocks = (Array.isArray(contents) ? contents : []).map((resource) => ({
    type: "resource",
    resource,
  }));
  return { content: blocks as CallToolResult["content"] };
}

interface FailedCall {
  parts: ConnectionParts;
  call: Omit<CallRequest, "args">;
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
    const words = error.message.replace(/^MCP error -?\d+: /, "");
    const text = boundText(words, LIMITS.errorTextChars, parts.redact);
    const data = error.data === undefined ? {} : { rpcData: boundJson(error.data, { redact: parts.redact }) };
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
