/**
 * What Pi has been told of our tools. In the factory everything is registered, since that is free there;
 * once Pi has bound, each registration rebuilds its whole registry, so then only what the model can reach.
 */
import { type Catalog, type CatalogTool, sameDefinition } from "../catalog/catalog.ts";
import type { Pi, ToolExposure } from "../host.ts";
import { NAME_SEPARATOR as SEPARATOR, serverPrefix } from "../protocol/names.ts";
import type { SnapshotServer } from "../protocol/snapshot.ts";
import type { DeclaredTool } from "./branch-tools.ts";
import type { DirectRule } from "./direct.ts";
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
  /**
   * Re-registers tools that are declared now and whose bytes differ, withdraws those that are gone, and
   * with `wantsDirect` registers direct tools that are new. A withdrawn tool whose server is back is declared
   * again. Tells Pi of no others.
   */
  follow(catalog: () => Catalog, wantsDirect: boolean): void;
  /** Whether some tool of this server may be direct. `configured`: what the configuration says. */
  concernsDirect(server: string, configured: boolean): boolean;
  /** The tool of that name, if it was taken back. */
  withdrawn(name: string): CatalogTool | undefined;
  /** Takes back every tool that fits. */
  withdrawAll(of: (tool: CatalogTool) => boolean): void;
  /**
   * Registers what the branch has declared and Pi does not know; Pi then declares it again. A tool that the
   * catalog does not hold, because its server is down and nothing is cached, comes back as the transcript
   * has it, byte for byte; `serverOf` tells whose it is. Answers how many are left that nobody here knows.
   */
  restore(
    declared: ReadonlyMap<string, DeclaredTool>,
    catalog: Catalog,
    serverOf: (toolName: string) => SnapshotServer | undefined,
  ): number;
  activate(tools: readonly CatalogTool[]): Activation;
}

function fromTranscript(
  { name, description, parameters }: DeclaredTool,
  server: SnapshotServer,
): CatalogTool {
  const tool = name.slice(serverPrefix(server.name).length + SEPARATOR.length);
  const schemaKeys = Object.keys(parameters);
  return { name, tool, server, description, schemaKeys, schema: new Uint8Array(), inputSchema: parameters };
}

export interface RegistrarOptions {
  call: CallTool;
  direct: DirectRule;
}

export function createRegistrar(pi: Pi, { call, direct }: RegistrarOptions): Registrar {
  const registered = new Map<string, CatalogTool>();
  /** Withdrawn tools, and whether the model had them. */
  const hidden = new Map<string, { wasActive: boolean }>();
  const exposureOf = (tool: CatalogTool): ToolExposure => (direct.isDirect(tool) ? "direct" : "deferred");
  const register = (tool: CatalogTool): void => {
    registered.set(tool.name, tool);
    hidden.delete(tool.name);
    pi.registerTool(createMcpTool(tool, call, exposureOf(tool)));
  };
  const registerIfNew = (tool: CatalogTool): void => {
    const before = registered.get(tool.name);
    const same = before && !hidden.has(tool.name) && sameDefinition(before, tool);
    // The other exposure of a tool that the model has is not worth its prompt cache.
    if (!same) register(tool);
  };
  /** Pi has no way to take a tool back: a hidden one is registered but unreachable. */
  const withdraw = (tool: CatalogTool): void => {
    hidden.set(tool.name, { wasActive: pi.getActiveTools().includes(tool.name) });
    pi.registerTool(createMcpTool(tool, call, "hidden"));
  };
  /** Its server is gone, or has told its tools and this is none of them. A server that is merely down keeps them. */
  const isGone = (tool: CatalogTool, catalog: Catalog): boolean => {
    if (catalog.get(tool.name)) return false;
    const server = catalog.servers.find(({ name }) => name === tool.server.name);
    return server === undefined || server.toolsKnown;
  };
  return {
    registerAll: (catalog) => {
      for (const tool of catalog.tools) register(tool);
    },
    follow: (catalog, wantsDirect) => {
      const back = [...hidden].filter(
        ([name, { wasActive }]) => wasActive && catalog().get(name) !== undefined,
      );
      if (back.length > 0) {
        for (const [name] of back) register(catalog().get(name) as CatalogTool);
        pi.setActiveTools([...pi.getActiveTools(), ...back.map(([name]) => name)]);
      }
      for (const name of pi.getActiveTools()) {
        const before = registered.get(name);
        if (!before) continue;
        const tool = catalog().get(name);
        if (tool) registerIfNew(tool);
        else if (isGone(before, catalog())) withdraw(before);
      }
      if (!wantsDirect) return;
      for (const tool of catalog().tools) if (direct.isDirect(tool)) registerIfNew(tool);
    },
    concernsDirect: direct.concerns,
    withdrawn: (name) => (hidden.has(name) ? registered.get(name) : undefined),
    withdrawAll: (of) => {
      for (const tool of registered.values()) if (of(tool) && !hidden.has(tool.name)) withdraw(tool);
    },
    restore: (declared, catalog, serverOf) => {
      const missing = [...declared.values()].filter(({ name }) => !registered.has(name));
      if (missing.length === 0) return 0;
      const inPi = new Set(pi.getAllTools().map(({ name }) => name));
      let left = 0;
      for (const tool of missing) {
        if (inPi.has(tool.name)) continue;
        const known = catalog.get(tool.name);
        const server = known ? undefined : serverOf(tool.name);
        if (known) register(known);
        else if (server) register(fromTranscript(tool, server));
        else if (tool.name.includes(SEPARATOR)) left++;
      }
      return left;
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
