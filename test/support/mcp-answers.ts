/** Owns: the answers of a small MCP server with one tool, which echoes its arguments. Benches use it as well as tests. */

export interface Message {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
}

const RESULTS: Record<string, (message: Message) => unknown> = {
  initialize: ({ params }) => ({
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "fixture", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "echo", inputSchema: { type: "object" } }] }),
  "tools/call": ({ params }) => ({ content: [{ type: "text", text: JSON.stringify(params?.arguments) }] }),
};

export const resultOf = (message: Message): string =>
  JSON.stringify({ jsonrpc: "2.0", id: message.id, result: RESULTS[message.method ?? ""]?.(message) ?? {} });
