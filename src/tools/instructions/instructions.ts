/**
 * The servers' own words on their use, for the model. Owns: which servers' words the branch holds already, and how the
 * words are bounded and marked (run.ts, loaded with the first answer). Must not: change a declared tool, because any
 * changed byte of a declaration costs the user their prompt cache.
 * Called by: the session for the result of a call, ToolSearch and the proxy tool for what they find.
 */
import type { Catalog } from "../../catalog/catalog.ts";
import type { Instructions, InstructionsState } from "./contract.ts";

export type { Instructions, ReadBranch, ToldInstructions } from "./contract.ts";

export function createInstructions(catalog: () => Pick<Catalog, "servers">): Instructions {
  const state: InstructionsState = { told: undefined };
  return {
    tell: async (servers, branch) => {
      const { tellInstructions } = await import("./run.ts");
      return tellInstructions(state, { asked: servers, known: catalog().servers, branch });
    },
    branchChanged: () => {
      state.told = undefined;
    },
  };
}
