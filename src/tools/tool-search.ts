/**
 * The tool ToolSearch. Owns: its declaration; tool-search-call.ts owns what it does. The declaration changes at most once
 * per session, because any changed byte costs the user their prompt cache; src/shared/text/search-tool.ts makes the
 * description.
 */
import type { PiTool } from "../pi/api.ts";
import { TOOL_SEARCH } from "../shared/naming.ts";
import { TOOL_SEARCH_PARAMETERS } from "../shared/text/search-parameters.ts";
import type { ToolHost } from "./host.ts";
import { createRenderers } from "./rows.ts";
import type { LoadSkill } from "./tool-search-call.ts";

export function createToolSearch(description: string, host: ToolHost): PiTool {
  return {
    name: TOOL_SEARCH,
    label: TOOL_SEARCH,
    ...createRenderers(TOOL_SEARCH),
    description,
    promptSnippet: "Find and load MCP tools",
    parameters: TOOL_SEARCH_PARAMETERS,
    exposure: "model-only",
    annotations: { readOnlyHint: true, openWorldHint: false },
    reachesTools: () => "all",
    async execute(callId, params, signal, _onUpdate, ctx) {
      const { runToolSearch } = await import("./tool-search-call.ts");
      const load: LoadSkill = ({ name }) =>
        host.forModel(callId, () => ctx.executeTool(name, {}, signal ? { signal } : {}));
      return runToolSearch(host, params, {
        signal,
        load,
        branch: () => ctx.sessionManager.buildContextEntries(),
      });
    },
  };
}
