/**
 * Tools that became known after Pi had bound and that nobody has loaded are not registered, since each
 * registration then costs Pi a rebuild of its registry. A tool that reaches other tools, such as `codemode`
 * or `tool_search`, needs them: before such a call runs they are registered, a few at a time.
 */
import type { Catalog, CatalogTool } from "../../catalog/catalog.ts";
import { createSlices } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import { serverPrefix } from "../../shared/naming/names.ts";
import type { Registrar } from "./registrar.ts";

export type Reach = "all" | readonly string[];

/** As codemode writes a tool's name in a script. */
const identifier = (name: string): string => name.replace(/\W/g, "_");

/**
 * The tools that a call may reach: words name a tool, or hold the name of its server as the part before the
 * tool's.
 */
export function reached(tools: readonly CatalogTool[], reach: Reach): CatalogTool[] {
  if (reach === "all") return [...tools];
  const words = new Set(reach.map(identifier));
  const serverNamed = new Map<string, boolean>();
  const namesServer = (server: string): boolean => {
    let named = serverNamed.get(server);
    if (named === undefined) {
      const prefix = identifier(serverPrefix(server));
      named = [...words].some((word) => word.includes(prefix));
      serverNamed.set(server, named);
    }
    return named;
  };
  return tools.filter(({ name, server }) => words.has(identifier(name)) || namesServer(server.name));
}

export interface LateTools {
  /** Settles when the tools that this call may reach are registered. */
  beforeCall(toolName: string, input: Record<string, unknown>): Promise<void>;
}

export interface LateToolsOptions {
  registrar: Pick<Registrar, "outdated" | "renew">;
  catalog: () => Catalog;
  /** Our own tools that load what they find themselves. */
  ownTools: readonly string[];
  /** Some server has not told its tools yet. */
  isLearning: () => boolean;
  /** Waits for those, within limits. */
  settle: () => Promise<unknown>;
  /** Nothing may be registered any more. */
  isOver: () => boolean;
}

export function createLateTools(pi: Pi, options: LateToolsOptions): LateTools {
  const { registrar, catalog, ownTools, isLearning, settle, isOver } = options;

  const renewInSlices = async (reach: Reach): Promise<void> => {
    const due = reached(await registrar.outdated(catalog()), reach);
    // One registration may take Pi 2 ms.
    const slices = createSlices({ sliceMs: 2, steps: 1 });
    for (const tool of due) {
      await slices.step();
      if (isOver()) return;
      registrar.renew(tool, catalog());
    }
  };

  return {
    beforeCall: async (toolName, input) => {
      if (ownTools.includes(toolName)) return;
      if (!isLearning() && (await registrar.outdated(catalog())).length === 0) return;
      const reach = pi
        .getAllTools()
        .find(({ name }) => name === toolName)
        ?.reachesTools?.(input);
      if (reach === undefined || reach.length === 0) return;
      // Without a worker there is nothing to wait for; what is known is registered anyway.
      if (isLearning()) await settle().catch(() => undefined);
      if (!isOver()) await renewInSlices(reach);
    },
  };
}
