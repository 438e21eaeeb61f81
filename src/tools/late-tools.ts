/**
 * Registers tools late: just before a tool that reaches other tools, such as `codemode` or `tool_search`, runs. Tools that
 * become known after Pi has bound are not registered earlier, because each registration costs Pi a rebuild of its
 * registry. outdated.ts, loaded with the first such call, makes the registrations.
 */
import type { Catalog } from "../catalog/catalog.ts";
import type { Pi } from "../pi/api.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { Registrar } from "./registrar.ts";

export interface LateTools {
  /** Settles when the tools that the call may reach are registered. */
  beforeCall(toolName: string, input: Record<string, unknown>): Promise<void>;
}

export interface LateToolsOptions {
  registrar: Pick<Registrar, "outdated" | "renew" | "count">;
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

  /** Whether the factory has left most tools out. */
  const isVast = (): boolean => catalog().count > LIMITS.toolsAtStart;

  return {
    beforeCall: async (toolName, input) => {
      if (ownTools.includes(toolName)) return;
      // Most tools of a very large catalog are unknown to Pi at all times, so they are not compared before each call.
      if (!isVast() && !isLearning() && (await registrar.outdated(catalog())).length === 0) return;
      const reach = pi
        .getAllTools()
        .find(({ name }) => name === toolName)
        ?.reachesTools?.(input);
      if (reach === undefined || reach.length === 0) return;
      // The wait fails without a worker. The tools that are known are registered anyway.
      if (isLearning()) await settle().catch(() => undefined);
      const { renewReached } = await import("./outdated.ts");
      if (!isOver()) await renewReached(options, reach, isVast());
    },
  };
}
