/**
 * Registers tools late: just before a tool that reaches other tools, such as `codemode` or `tool_search`, runs. Tools that
 * become known after Pi has bound are not registered earlier, because each registration costs Pi a rebuild of its
 * registry. The registrations are made in slices.
 */
import type { Catalog, CatalogTool } from "../../catalog/catalog.ts";
import { createSlices } from "../../catalog/catalog.ts";
import type { Pi } from "../../pi/api.ts";
import { serverPrefix } from "../../shared/naming/names.ts";
import type { Registrar } from "./registrar.ts";

export type Reach = "all" | readonly string[];

/** The form in which codemode writes a tool's name in a script. */
const identifier = (name: string): string => name.replace(/\W/g, "_");

/** The tools that a call may reach: a word is the tool's name, or holds the prefix of the tool's server. */
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
  /** Settles when the tools that the call may reach are registered. */
  beforeCall(toolName: string, input: Record<string, unknown>): Promise<void>;
}

export interface LateToolsOptions {
  registrar: Pick<Registrar, "outdated" | "renew">;
  catalog: () => Catalog;
  /** Names of our own tools, which load what they find. */
  ownTools: readonly string[];
  /** Whether the tools of some server will become known soon. */
  isLearning: () => boolean;
  /** Waits for such servers, within limits. */
  settle: () => Promise<unknown>;
  /** Whether the session has ended, after which nothing may be registered. */
  isOver: () => boolean;
}

export function createLateTools(pi: Pi, options: LateToolsOptions): LateTools {
  const { registrar, catalog, ownTools, isLearning, settle, isOver } = options;

  const renewInSlices = async (reach: Reach): Promise<void> => {
    const due = reached(await registrar.outdated(catalog()), reach);
    // One registration can take Pi 2 ms.
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
      // The wait fails without a worker. The tools that are known are registered anyway.
      if (isLearning()) await settle().catch(() => undefined);
      if (!isOver()) await renewInSlices(reach);
    },
  };
}
