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
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { CallRequest, Connection, ConnectionParts, ConnectOptions, ReadRequest } from "./connection.ts";
import { callFailure, listFailure, startLimitMs } from "./failures.ts";
import type { SendRequest } from "./list-pages.ts";
import { listPrompts } from "./list-prompts.ts";
import { listResources } from "./list-resources.ts";
import { listTools } from "./list-tools.ts";
import { readProgress } from "./progress.ts";
import { isClosed, isTimeout, refusedAnswer } from "./sdk-errors.ts";

const CLIENT_INFO = { name: "pi-mcp-threads", version: "0.1.0" };

/** Far more than any model is told of it. */
const INSTRUCTIONS_CHARS = 100_000;
const LOG_MESSAGE = "notifications/message";

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
