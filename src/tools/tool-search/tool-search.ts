/**
 * The tool ToolSearch. Owns: its declaration; run.ts owns what it does. Must not: know Pi's registry (tools/registry).
 * Called by: tools.ts. The declaration changes at most once per session, because any changed byte costs the user their
 * prompt cache; src/shared/text/search-tool.ts makes the description.
 * To let the tools that find others ask the session for more: `ToolHost` (host.ts).
 */

import type { PiTool } from "../../pi/tools.ts";
import { TOOL_SEARCH } from "../../shared/naming.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import { createRenderers } from "../rows/rows.ts";
import type { ToolSearchHost } from "./host.ts";

export type { ToolHost, ToolSearchHost } from "./host.ts";

const PARAMETERS = {
  type: "object",
  properties: {
    query: {
      type: "string",
      description: "What the tool should do, in a few words, or select:name1,name2.",
    },
    server: {
      type: "string",
      description: "Only tools of this server. Set it whenever one fits: the right tool is found more often.",
    },
    limit: {
      type: "integer",
      minimum: 1,
      maximum: LIMITS.searchResultsMost,
      description: `${LIMITS.searchResults} by default.`,
    },
  },
  required: ["query"],
  additionalProperties: false,
};

export function createToolSearch(description: string, host: ToolSearchHost): PiTool {
  return {
    name: TOOL_SEARCH,
    label: TOOL_SEARCH,
    ...createRenderers(TOOL_SEARCH),
    description,
    promptSnippet: "Find and load MCP tools",
    parameters: PARAMETERS,
    exposure: "model-only",
    annotations: { readOnlyHint: true, openWorldHint: false },
    reachesTools: () => "all",
    async execute(_callId, params, signal, _onUpdate, ctx) {
      const { runToolSearch } = await import("./run.ts");
      return runToolSearch(host, params, { signal, branch: () => ctx.sessionManager.getBranch() });
    },
  };
}
