/**
 * An MCP tool as a Pi tool: its definition, and its call through the runtime. A failure becomes an error
 * result that ends with the expected parameters; nothing is thrown into Pi.
 */
import { type CatalogTool, inputSchemaOf } from "../../catalog/catalog.ts";
import type { PiTool, ToolExposure, ToolResult } from "../../pi/api.ts";
import { serverPrefix } from "../../shared/naming/names.ts";
import type { CallProgress, CallResult } from "../../shared/protocol/calls.ts";
import { type ErrorData, type JsonValue, ThreadsError, toWireError } from "../../shared/protocol/errors.ts";
import type { SnapshotServer } from "../../shared/snapshot/contract.ts";
import { failureText } from "../../shared/text/failure.ts";
import { parameterList } from "../../shared/text/signature.ts";
import { cleanText, oneLine } from "../../shared/text/unprintable.ts";
import { createRenderers, type RowDetails } from "../rows/rows.ts";
import { lazyInputSchema } from "./input-schema.ts";
import { lazyOutputSchema } from "./output-schema.ts";

export interface ToolCall {
  callId: string;
  server: string;
  tool: string;
  args: Record<string, unknown>;
  signal: AbortSignal | undefined;
  /** Whoever made the call reads the server's own result. */
  wantsStructured: boolean;
  onProgress: (message: string, counted?: Omit<CallProgress, "message">) => void;
}

export type CallTool = (call: ToolCall) => Promise<CallResult>;

/** How it is called. */
const expectedCall = (tool: CatalogTool): string => `${tool.name}${parameterList(inputSchemaOf(tool))}`;

/** The end of an error that a call may have brought on itself. */
export const expectedLine = (tool: CatalogTool): string => `Expected parameters: ${expectedCall(tool)}`;

/**
 * A call that another tool made, such as a codemode script: Pi gives it the id `<calling id>/<n>`. Only
 * there `structuredContent`, the server's whole result, is read, and in RPC mode Pi writes every result to its event stream.
 */
const isNested = (callId: string): boolean => /\/\d+$/.test(callId);

/**
 * For a script, which sees no `details`: the server's own error as a result, with code, message and data of the
 * JSON-RPC error (data as far as it was kept). A call that got no answer has none, so Pi rejects it with the text.
 */
function answeredError(data: ErrorData | undefined, message: string): Pick<ToolResult, "structuredContent"> {
  if (typeof data?.rpcCode !== "number") return {};
  const { rpcCode: code, rpcData } = data;
  const error = { code, message, ...(rpcData === undefined ? {} : { data: rpcData }) };
  return { structuredContent: { content: [{ type: "text", text: message }], isError: true, error } };
}

const readJson = (json: Uint8Array): JsonValue => JSON.parse(Buffer.from(json).toString()) as JsonValue;

/** A name at a server may have 1,000 characters. */
const LABEL_CHARS = 200;

type Namespace = NonNullable<PiTool["namespace"]>;
const namespaces = new WeakMap<SnapshotServer, Namespace>();

/** One object a server, however many tools it has. */
function namespaceOf(server: SnapshotServer): Namespace {
  let namespace = namespaces.get(server);
  if (!namespace) {
    namespace = {
      name: serverPrefix(server.name),
      aliases: [oneLine(server.name, LABEL_CHARS)],
      ...(server.description === undefined ? {} : { description: server.description }),
      ...(server.instructions === undefined ? {} : { instructions: server.instructions }),
    };
    namespaces.set(server, namespace);
  }
  return namespace;
}

const rowOf = ({ server, tool }: CatalogTool): RowDetails => ({ server: server.name, tool });

function toResult(tool: CatalogTool, result: CallResult): ToolResult {
  const { content, isError, bytes, storedAt, forUser, scriptResult, scriptProblem } = result;
  const row: RowDetails = {
    ...rowOf(tool),
    durationMs: Math.round(result.durationMs),
    ...(bytes ? { bytes: { received: bytes.received, shown: bytes.shown } } : {}),
    ...(storedAt === undefined ? {} : { storedAt }),
    ...(forUser === undefined ? {} : { forUser }),
  };
  if (scriptProblem !== undefined) {
    // A script that went on with a part of the result would be wrong: its call rejects with these words.
    const details = { ...row, code: "message_too_large" };
    return { content: [{ type: "text", text: scriptProblem }], details, isError: true };
  }
  const hint = { type: "text" as const, text: expectedLine(tool) };
  return {
    content: isError ? [...content, hint] : content,
    details: row,
    ...(isError ? { isError: true } : {}),
    ...(scriptResult ? { structuredContent: readJson(scriptResult) } : {}),
  };
}

function toFailure(tool: CatalogTool, error: unknown, nested: boolean): ToolResult {
  const { code, data } = toWireError(error);
  const known = error instanceof ThreadsError ? error : { message: `${tool.name} failed: ${String(error)}` };
  const { message } = known;
  const remedy = "remedy" in known ? known.remedy : undefined;
  return {
    content: [{ type: "text", text: failureText({ message, remedy, data, expected: expectedCall(tool) }) }],
    details: { ...rowOf(tool), code, ...(data === undefined ? {} : { data }) },
    isError: true,
    ...(nested ? answeredError(data, message) : {}),
  };
}

/** Made for thousands of tools at once in the factory: as few objects each as can be. */
export function createMcpTool(
  tool: CatalogTool,
  call: CallTool,
  exposure: ToolExposure = "deferred",
): PiTool {
  const label = oneLine(`${tool.server.name} · ${tool.tool}`, LABEL_CHARS);
  const { renderCall, renderResult } = createRenderers(label);
  const piTool: PiTool = {
    name: tool.name,
    label,
    renderCall,
    renderResult,
    description: tool.description,
    parameters: lazyInputSchema(tool),
    outputSchema: lazyOutputSchema(tool),
    exposure,
    namespace: namespaceOf(tool.server),
    async execute(callId, args, signal, onUpdate) {
      const wantsStructured = isNested(callId);
      const onProgress: ToolCall["onProgress"] = (text, { progress, total } = {}) =>
        onUpdate?.({
          content: [{ type: "text", text: cleanText(text) }],
          details: { ...rowOf(tool), progress, total },
        });
      try {
        return toResult(
          tool,
          await call({
            callId,
            server: tool.server.name,
            tool: tool.tool,
            args: args ?? {},
            signal,
            wantsStructured,
            onProgress,
          }),
        );
      } catch (error) {
        return toFailure(tool, error, wantsStructured);
      }
    },
  };
  // No spread in the literal: it makes each of 2,000 objects a slow one.
  if (tool.annotations) piTool.annotations = tool.annotations;
  return piTool;
}
