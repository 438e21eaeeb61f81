/**
 * One live connection to a server through the MCP SDK: initialize, lists, calls. Knows nothing of transports and
 * lifecycles. A failed call rejects with a `ThreadsError` that says which server failed, why, and what to do.
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
import manifest from "../../../package.json" with { type: "json" };
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CallClock, startCallClock } from "./call-clock.ts";
import type { CallRequest, Connection, ConnectionParts, ConnectOptions, ReadRequest } from "./connection.ts";
import { callFailure, listFailure, startLimitMs, urlRequiredFailure } from "./failures.ts";
import type { SendRequest } from "./list-pages.ts";
import { listPrompts } from "./list-prompts.ts";
import { listResources } from "./list-resources.ts";
import { listTools } from "./list-tools.ts";
import { readProgress } from "./progress.ts";
import { complete, readMessages } from "./prompts.ts";
import { capabilitiesOf, takeQuestions, urlRequired } from "./questions.ts";
import { isClosed, isTimeout, refusedAnswer } from "./sdk-errors.ts";

const CLIENT_INFO = { name: manifest.name, version: manifest.version };

/** Far more characters than any model is shown. */
const INSTRUCTIONS_CHARS = 100_000;
const LOG_MESSAGE = "notifications/message";

/** Results of any shape are accepted (results/), so the SDK's schema compiler, ajv, is never started. */
const noValidator: jsonSchemaValidator = {
  getValidator:
    <T>(): JsonSchemaValidator<T> =>
    (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
};

/**
 * Sends `initialize` over the transport. If that fails, the SDK closes the transport. Rejects with `TooLarge` if the
 * transport refused the answer.
 */
export async function initialize(transport: Transport, options: ConnectOptions): Promise<Client> {
  const client = new Client(CLIENT_INFO, {
    capabilities: capabilitiesOf(options),
    jsonSchemaValidator: noValidator,
  });
  takeQuestions(client, options);
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
 * Hands the server's log messages on, whatever their shape: the SDK's own handler would refuse an unknown level. Asks for
 * a level only if the server says that it can be asked; a server that refuses, or does not answer, works all the same.
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
    getPrompt: async ({ prompt, args, signal }) => {
      const call = { tool: prompt, signal, timeoutMs: LIMITS.promptTimeoutMs, onProgress: () => undefined };
      const params = { name: prompt, arguments: args };
      return readMessages(await requestFor(client, parts, call, { method: "prompts/get", params }));
    },
    complete: (request) => complete(client, request),
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

/** The clock of one call. It ends the call like a timeout of the SDK (`isTimeout`). */
const clockOf = ({ timeoutMs }: Pick<CallRequest, "timeoutMs">, { asks }: ConnectionParts): CallClock =>
  startCallClock({
    limitMs: timeoutMs,
    capMs: Math.max(LIMITS.requestCapMs, timeoutMs),
    pauses: asks,
    reason: () => McpError.fromError(ErrorCode.RequestTimeout, "Request timed out", { timeout: timeoutMs }),
  });

/** Sends the request of a call, hands its progress on, and rejects with a `ThreadsError`. */
async function requestFor(
  client: Client,
  parts: ConnectionParts,
  call: Omit<CallRequest, "args">,
  request: { method: string; params: Record<string, unknown> },
): Promise<Record<string, unknown>> {
  const clock = clockOf(call, parts);
  const end = parts.asks?.callBegins();
  const signal = AbortSignal.any([call.signal, clock.signal]);
  try {
    return await client.request(request, ResultSchema, {
      signal,
      timeout: LIMITS.longestTimerMs,
      onprogress: (params) => {
        clock.renew();
        call.onProgress(readProgress(params, parts.redact));
      },
    });
  } catch (error) {
    clock.stop();
    // Servers answer -32000, which is the SDK's code for a closed connection, for errors of any kind.
    const answered = error instanceof McpError && client.transport !== undefined;
    const outcome = await urlRequired(error, parts.asks, call.signal);
    if (outcome !== undefined && !call.signal.aborted) throw urlRequiredFailure(parts, call, outcome);
    throw callFailure(parts.definition.name, { parts, call, error, answered });
  } finally {
    clock.stop();
    end?.(signal.aborted ? "given-up" : "done");
  }
}

async function callTool(client: Client, parts: ConnectionParts, call: CallRequest): Promise<CallToolResult> {
  const params = { name: call.tool, arguments: call.args };
  return (await requestFor(client, parts, call, { method: "tools/call", params })) as CallToolResult;
}

/** Reads a resource (MCP 2025-11-25, server/resources) and answers like a tool that embeds the resource. */
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
