/**
 * Owns: one MCP server over stdio whose tools come from a file: newline-delimited JSON-RPC, no dependencies.
 * Must not: do anything slow; the benches measure the client.
 * Called by: mcp.json files of the benches. TOOLS_FILE names a JSON array of tools as `tools/list` gives them.
 */
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const tools = JSON.parse(readFileSync(process.env.TOOLS_FILE, "utf8"));

const handlers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "bench-tools", version: "1.0.0" },
  }),
  ping: () => ({}),
  "tools/list": () => ({ tools }),
  "tools/call": ({ name, arguments: args }) => ({
    content: [{ type: "text", text: `${name} got ${JSON.stringify(args ?? {})}` }],
  }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const handler = handlers[method];
  const outcome = handler
    ? { result: handler(params ?? {}) }
    : { error: { code: -32601, message: `no method ${method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`);
});
