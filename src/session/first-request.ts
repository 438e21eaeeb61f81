/**
 * What the next request to the model must hold, prepared before Pi makes the request: ToolSearch names the servers,
 * direct tools are declared, and the branch's tools are registered. Waits for the worker only where nobody else knows
 * the answer, and within limits.
 */
import type { Pi } from "../pi/api.ts";
import type { PiContext } from "../pi/context.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registrar } from "../tools/registry/registry.ts";
import type { SearchTools } from "../tools/tools.ts";
import { type AwaitDirectOptions, awaitDirectTools } from "./await-direct.ts";
import { restoreBranch } from "./restore-branch.ts";
import { planWithin, type Running, type SessionWaits, serversOf, type WhileRunning } from "./running.ts";

export interface FirstRequestOptions extends AwaitDirectOptions {
  registrar: Pick<Registrar, "follow" | "registerDirect" | "restore" | "withdrawActive">;
  searchTools: Pick<SearchTools, "complete" | "declare" | "declarePlan">;
  running: WhileRunning<Pick<Running, "planned" | "settings" | "statuses" | "accepted" | "runtime">>;
  waits: Pick<SessionWaits, "directWaitMs" | "firstPlanWaitMs">;
}

export interface FirstRequest {
  /** Called before each prompt. */
  prepare(ctx: PiContext): Promise<void>;
  /** The session is new, or the user has moved to another branch: the next prompt restores that branch's tools. */
  branchChanged(): void;
}

/** Without a snapshot ToolSearch names the servers of the plan. */
async function describeServers({ store, searchTools, running, waits }: FirstRequestOptions): Promise<void> {
  if (searchTools.complete()) return;
  await planWithin(running, waits.firstPlanWaitMs);
  const session = running();
  if (!session) return;
  if (store.checksum() !== undefined) searchTools.declare(store.current());
  else if (session.settings) searchTools.declarePlan(serversOf(session), session.settings);
}

/** Until the request leaves, the worker leaves the processor to it. */
function goFirst(pi: Pi, runtime: Pick<Runtime, "post">): void {
  const tell = (state: "prepared" | "sent"): void => runtime.post("firstRequest", { state });
  tell("prepared");
  const stop = pi.on("before_provider_request", () => {
    stop();
    tell("sent");
  });
}

export function createFirstRequest(pi: Pi, options: FirstRequestOptions): FirstRequest {
  const { running } = options;
  let restoreDue = true;
  return {
    prepare: async (ctx) => {
      const session = running();
      if (!session) return;
      if (!session.settings) goFirst(pi, session.runtime);
      await describeServers(options);
      await awaitDirectTools(pi, options);
      if (!restoreDue || !running()) return;
      restoreDue = false;
      await restoreBranch(ctx, options);
    },
    branchChanged: () => {
      restoreDue = true;
    },
  };
}
