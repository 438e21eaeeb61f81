/**
 * Declares the tool through which the model reaches all others: ToolSearch, or `mcp` where the settings ask
 * for it. Once a session: with what the snapshot says in the factory, else with what is known before the
 * first prompt. Later changes are told in answers, since any changed byte costs the user their prompt cache.
 */
import type { Catalog } from "../catalog/catalog.ts";
import type { Pi, PiTool } from "../pi/api.ts";
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
  /** Where there is no catalog yet: the servers that the configuration names. */
  declarePlan(servers: readonly ServerStatus[], settings: CatalogSettings): void;
  /** Declared with all that a session's start can know. */
  complete(): boolean;
  /** Name of the tool that is declared. */
  name(): string;
}

export function createSearchTools(pi: Pi, host: ToolSearchHost & ProxyHost): SearchTools {
  let declared: PiTool | undefined;
  let complete = false;

  const register = (description: string, { proxyTool }: CatalogSettings): void => {
    const tool = proxyTool ? createProxyTool(description, host) : createToolSearch(description, host);
    if (declared?.name === tool.name && declared.description === tool.description) return;
    // Tools cannot be taken back: hidden, the model does not see it.
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
