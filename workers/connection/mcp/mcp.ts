/**
 * One live connection to a server through the MCP SDK: initialize, lists, calls. Knows nothing of
 * transports and lifecycles; a failed call leaves as a `ThreadsError` that says who, what and what to do.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type CallToolResult,
  McpError,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { JsonSchemaValidator, jsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/types.js";
import type { CallProgress } from "../../../src/shared/protocol/calls.ts";
import { messageOf, type ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { TransportKind } from "../../../src/shared/protocol/status.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Redactor, Secrets } from "../secrets/secrets.ts";
import { listFailure, startLimitMs } from "../servers/errors.ts";
import type { CloseTimes } from "../transports/stdio/transport.ts";
import { callFailure } from "./call-failure.ts";
import type { SendRequest } from "./list-pages.ts";
import { listPrompts } from "./list-prompts.ts";
import { type ListedResources, listResources } from "./list-resources.ts";
import { listTools } from "./list-tools.ts";
import { readProgress } from "./progress.ts";
import { isClosed, isTimeout, refusedAnswer } from "./sdk-errors.ts";

const CLIENT_INFO = { name: "pi-mcp-threads", version: "0.1.0" };

/** Far more than any model is told of it. */
const INSTRUCTIONS_CHARS = 100_000;
const LOG_MESSAGE = "notifications/message";

export interface ConnectOptions {
  definition: ServerDefinition;
  cwd: string;
  /** `mcp-npx-cache.json`. */
  npxCacheFile: string;
  signal: AbortSignal;
  maxMessageBytes: number;
  /** Over HTTP: pauses before further attempts, in milliseconds. Absent: 300 and 1,000. */
  retryMs?: readonly number[];
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
  /** So many bytes of the server's are about to be looked at. */
  onBytes?: ((bytes: number) => void) | undefined;
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

/**
 * `initialize` over the transport. The SDK closes the transport where it fails. Rejects with `TooLarge` where the
 * answer was refused.
 */
export async function initialize(transport: Transport, options: ConnectOptions): Promise<Client> {
  const client = new Client(CLIENT_INFO, { capabilities: {}, jsonSchemaValidator: noValidator });
  client.onerror = (error) => options.onNote(error.message);
  try {
    const timeout = startLimitMs(options.definition);
    await client.connect(transport, { signal: options.signal, timeout });
  } catch (error) {
    throw refusedAnswer(error) ?? error;
  }
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
    instructions: client.getInstructions()?.slice(0, INSTRUCTIONS_CHARS).toWellFormed(),
    listTools: async (signal) => {
      if (!client.getServerCapabilities()?.tools) return [];
      const { definition, onNote } = parts;
      try {
        return await listTools(senderOf(client), { signal, limitMs: startLimitMs(definition), onNote });
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
