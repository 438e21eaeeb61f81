/**
 * The tool through which the model reaches all other tools: ToolSearch, or `mcp` if the settings ask for it. Owns: which
 * of the two is declared, and with which description. Must not: search or call. Called by: session.
 * The declaration is made once per session: from the snapshot in the factory, else from what is known before the first
 * prompt. Answers tell later changes, because any changed byte of a declaration costs the user their prompt cache.
 * To add such a tool: a folder here with its definition and its run.ts, a setting, a case in `register`.
 */
import type { Catalog } from "../catalog/catalog.ts";
import type { Pi } from "../pi/api.ts";
import type { PiTool } from "../pi/tools.ts";
import { TOOL_SEARCH } from "../shared/naming/own-tools.ts";
import type { CatalogSettings } from "../shared/protocol/catalog.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";
import { searchToolDescription } from "../shared/text/search-tool.ts";
import type { ProxyHost } from "./proxy/proxy.ts";
import { createProxyTool } from "./proxy/proxy.ts";
import type { ToolSearchHost } from "./tool-search/tool-search.ts";
import { createToolSearch } from "./tool-search/tool-search.ts";

export interface SearchTools {
  declare(catalog: Catalog): void;
  /** Declares the servers that the configuration names, before there is a catalog. */
  declarePlan(servers: readonly ServerStatus[], settings: CatalogSettings): void;
  /** Whether the declaration holds the servers: those of a snapshot or of the plan. */
  complete(): boolean;
  /** Name of the declared tool. */
  name(): string;
}

export function createSearchTools(pi: Pi, host: ToolSearchHost & ProxyHost): SearchTools {
  let declared: PiTool | undefined;
  let complete = false;

  const register = (description: string, { proxyTool }: CatalogSettings): void => {
    const tool = proxyTool ? createProxyTool(description, host) : createToolSearch(description, host);
    if (declared?.name === tool.name && declared.description === tool.description) return;
    // Pi cannot take a tool back; the model does not see a hidden one.
    if (declared && declared.name !== tool.name) pi.registerTool({ ...declared, exposure: "hidden" });
    declared = tool;
    pi.registerTool(tool);
  };

  return {
    declare: (catalog) => {
      complete = catalog.checksum !== undefined;
      register(catalog.description, catalog.settings);
    },
    declarePlan: (servers, settings) => {
      complete = true;
      const enabled = servers.filter(({ state }) => state !== "disabled");
      register(searchToolDescription(enabled, settings), settings);
    },
    complete: () => complete,
    name: () => declared?.name ?? TOOL_SEARCH,
  };
}
