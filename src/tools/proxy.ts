/**
 * The proxy tool `mcp`, for the smallest prompt (`settings.proxyTool`): it finds, describes and calls every MCP tool
 * through its own parameters. Owns: its declaration; proxy-call.ts owns what it does. Must not: have a catalog, a ranking
 * or calls of its own: it uses those of ToolSearch. To add a mode: a parameter here, a case in proxy-call.ts.
 */
import type { PiTool } from "../pi/api.ts";
import { PROXY_TOOL } from "../shared/naming.ts";
import type { ToolHost } from "./host.ts";
import { createRenderers } from "./rows.ts";

const PARAMETERS = {
  type: "object",
  properties: {
    tool: { type: "string", description: "Tool to call" },
    args: {
      anyOf: [{ type: "object", additionalProperties: true }, { type: "string" }],
      description: "Its arguments: object or JSON string",
    },
    connect: { type: "string", description: "Server to connect" },
    describe: { type: "string", description: "Tool to describe" },
    search: { type: "string", description: "Words for what a tool should do" },
    server: { type: "string", description: "List this server's tools, or search and call only there" },
    regex: { type: "boolean", description: "search is a regular expression" },
    includeSchemas: { type: "boolean", description: "Parameters in search results, default true" },
  },
  additionalProperties: false,
};

export function createProxyTool(description: string, host: ToolHost): PiTool {
  return {
    name: PROXY_TOOL,
    label: "MCP",
    ...createRenderers("MCP"),
    description,
    promptSnippet: "Find and call MCP tools",
    parameters: PARAMETERS,
    exposure: "model-only",
    // Extensions that allow or refuse tools judge each tool that it calls by that tool's own hints.
    annotations: { readOnlyHint: true, openWorldHint: false },
    reachesTools: () => "all",
    async execute(callId, params, signal, onUpdate, ctx) {
      const { runProxyTool } = await import("./proxy-call.ts");
      return runProxyTool(host, { callId, params, signal, onUpdate, ctx });
    },
  };
}
