/**
 * An MCP tool as a Pi tool: its definition, and its call through the runtime. A failure becomes an error
 * result that ends with the expected parameters; nothing is thrown into Pi.
 */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import type { PiTool, ToolResult } from "../host.ts";
import { describeError, ThreadsError, toWireError } from "../protocol/errors.ts";
import { serverPrefix } from "../protocol/names.ts";
import type { SnapshotServer } from "../protocol/snapshot.ts";
import type { CallResult } from "../protocol/types.ts";
import { lazyInputSchema } from "./schema.ts";
import { parameterList } from "./signature.ts";

export interface ToolCall {
  callId: string;
  server: string;
  tool: string;
  args: Record<string, unknown>;
  signal: AbortSignal | undefined;
  onProgress: (message: string) => void;
}

export type CallTool = (call: ToolCall) => Promise<CallResult>;

const expected = (tool: CatalogTool): string =>
  `Expected parameters: ${tool.name}${parameterList(inputSchemaOf(tool))}`;

type Namespace = NonNullable<PiTool["namespace"]>;
const namespaces = new WeakMap<SnapshotServer, Namespace>();

/** One object a server, however many tools it has. */
function namespaceOf(server: SnapshotServer): Namespace {
  let namespace = namespaces.get(server);
  if (!namespace) {
    namespace = {
      name: serverPrefix(server.name),
      aliases: [server.name],
      ...(server.description === undefined ? {} : { description: server.description }),
    };
    namespaces.set(server, namespace);
  }
  return namespace;
}

export function createMcpTool(tool: CatalogTool, call: CallTool): PiTool {
  const details = { server: tool.server.name, tool: tool.tool };

  const toResult = (result: CallResult): ToolResult => ({
    content: result.isError ? [...result.content, { type: "text", text: expected(tool) }] : result.content,
    details: { ...details, durationMs: Math.round(result.durationMs) },
    ...(result.isError ? { isError: true } : {}),
  });

  const toFailure = (error: unknown): ToolResult => {
    const { code, data } = toWireError(error);
    const known =
      error instanceof ThreadsError ? error : { message: `${tool.name} failed: ${String(error)}` };
    const text = `${describeError(known)}\n${expected(tool)}`;
    return {
      content: [{ type: "text", text }],
      details: { ...details, code, ...(data === undefined ? {} : { data }) },
      isError: true,
    };
  };

  return {
    name: tool.name,
    label: `${tool.server.name} · ${tool.tool}`,
    description: tool.description,
    parameters: lazyInputSchema(tool),
    exposure: "deferred",
    namespace: namespaceOf(tool.server),
    ...(tool.annotations ? { annotations: tool.annotations } : {}),
    async execute(callId, args, signal, onUpdate) {
      try {
        const onProgress = (text: string): void => onUpdate?.({ content: [{ type: "text", text }], details });
        return toResult(
          await call({
            callId,
            server: tool.server.name,
            tool: tool.tool,
            args: args ?? {},
            signal,
            onProgress,
          }),
        );
      } catch (error) {
        return toFailure(error);
      }
    },
  };
}
