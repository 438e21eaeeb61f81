/**
 * What Pi has been told of our tools. In the factory everything is registered, since that is free there;
 * once Pi has bound, each registration rebuilds its whole registry, so then only what the model can reach.
 */
import { type Catalog, type CatalogTool, sameDefinition } from "../catalog/catalog.ts";
import type { Pi } from "../host.ts";
import { encode } from "../protocol/codec.ts";
import { NAME_SEPARATOR as SEPARATOR, serverPrefix } from "../protocol/names.ts";
import type { SnapshotServer } from "../protocol/snapshot.ts";
import type { DeclaredTool } from "./branch-tools.ts";
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
  /**
   * Registers what the branch has declared and Pi does not know; Pi then declares it again. A tool that the
   * catalog does not hold, because its server is down and nothing is cached, comes back as the transcript
   * has it, byte for byte; `serverOf` tells whose it is.
   */
  restore(
    declared: ReadonlyMap<string, DeclaredTool>,
    catalog: Catalog,
    serverOf: (toolName: string) => SnapshotServer | undefined,
  ): void;
  activate(tools: readonly CatalogTool[]): Activation;
}

function fromTranscript(
  { name, description, parameters }: DeclaredTool,
  server: SnapshotServer,
): CatalogTool {
  const tool = name.slice(serverPrefix(server.name).length + SEPARATOR.length);
  return { name, tool, server, description, schemaKeys: Object.keys(parameters), schema: encode(parameters) };
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
    restore: (declared, catalog, serverOf) => {
      const missing = [...declared.values()].filter(({ name }) => !registered.has(name));
      if (missing.length === 0) return;
      const inPi = new Set(pi.getAllTools().map(({ name }) => name));
      for (const tool of missing) {
        if (inPi.has(tool.name)) continue;
        const known = catalog.get(tool.name);
        const server = known ? undefined : serverOf(tool.name);
        if (known) register(known);
        else if (server) register(fromTranscript(tool, server));
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
