/**
 * What Pi has been told of our tools. In the factory everything is registered, since that is free there;
 * once Pi has bound, each registration rebuilds its whole registry, so then only what the model can reach.
 */
import { type Catalog, type CatalogTool, sameDefinition } from "../catalog/catalog.ts";
import type { Pi } from "../host.ts";
import { type CallTool, createMcpTool } from "./mcp-tool.ts";

export interface Activation {
  /** Declared to the model from the next request on. */
  active: CatalogTool[];
  /** Pi did not take them, for example because of `--tools`. */
  refused: CatalogTool[];
}

export interface Registrar {
  /** For the factory. */
  registerAll(catalog: Catalog): void;
  /** Re-registers tools that are declared now and whose bytes differ; tells Pi of no others. */
  follow(catalog: () => Catalog): void;
  activate(tools: readonly CatalogTool[]): Activation;
}

export function createRegistrar(pi: Pi, call: CallTool): Registrar {
  const registered = new Map<string, CatalogTool>();
  const register = (tool: CatalogTool): void => {
    registered.set(tool.name, tool);
    pi.registerTool(createMcpTool(tool, call));
  };
  const registerIfNew = (tool: CatalogTool): void => {
    const before = registered.get(tool.name);
    if (!before || !sameDefinition(before, tool)) register(tool);
  };
  return {
    registerAll: (catalog) => {
      for (const tool of catalog.tools) register(tool);
    },
    follow: (catalog) => {
      for (const name of pi.getActiveTools()) {
        const tool = registered.has(name) ? catalog().get(name) : undefined;
        if (tool) registerIfNew(tool);
      }
    },
    activate: (tools) => {
      for (const tool of tools) registerIfNew(tool);
      const before = pi.getActiveTools();
      const added = tools.map((tool) => tool.name).filter((name) => !before.includes(name));
      if (added.length > 0) pi.setActiveTools([...before, ...added]);
      const after = new Set(pi.getActiveTools());
      return {
        active: tools.filter((tool) => after.has(tool.name)),
        refused: tools.filter((tool) => !after.has(tool.name)),
      };
    },
  };
}
