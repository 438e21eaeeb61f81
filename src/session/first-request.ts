/**
 * What the next request to the model must hold, prepared before Pi makes the request: ToolSearch names the servers,
 * direct tools are declared, the branch's tools are registered, and the model is told of servers that have changed. Waits
 * for the worker only where nobody else knows the answer, and within limits.
 */
import type { AddedMessage, Pi, PiContext } from "../pi/api.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { declaredTools } from "../tools/branch.ts";
import type { Registrar } from "../tools/registrar.ts";
import type { Planned, SearchTools } from "../tools/tools.ts";
import { type AwaitDirectOptions, awaitDirectTools } from "./await-direct.ts";
import { restoreBranch } from "./restore-branch.ts";
import { planWithin, type Running, type SessionWaits, serversOf, type WhileRunning } from "./running.ts";

export interface FirstRequestOptions extends AwaitDirectOptions {
  registrar: Pick<Registrar, "follow" | "registerDirect" | "restore" | "withdrawActive">;
  searchTools: Pick<SearchTools, "complete" | "describe" | "keep" | "news">;
  running: WhileRunning<Pick<Running, "planned" | "settings" | "statuses" | "accepted" | "runtime">>;
  waits: Pick<SessionWaits, "directWaitMs" | "firstPlanWaitMs">;
}

export interface FirstRequest {
  /** Called before each prompt. Answers what the model reads beside the prompt; undefined: nothing. */
  prepare(ctx: PiContext): Promise<AddedMessage | undefined>;
  /**
   * The session is new, the user has moved to another branch, or a compaction has shortened it: the next prompt restores
   * that branch's tools, and what its declaration says.
   */
  branchChanged(): void;
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
  const { running, searchTools } = options;
  let restoreDue = true;
  const planned = (): Planned | undefined => {
    const session = running();
    return session?.settings && { servers: serversOf(session), settings: session.settings };
  };
  return {
    prepare: async (ctx) => {
      const session = running();
      if (!session) return undefined;
      if (!session.settings) goFirst(pi, session.runtime);
      const declared = restoreDue ? declaredTools(ctx.sessionManager.getBranch()) : undefined;
      if (declared) searchTools.keep(declared);
      // Without a snapshot ToolSearch names the servers of the plan.
      if (!searchTools.complete()) await planWithin(running, options.waits.firstPlanWaitMs);
      await awaitDirectTools(pi, options);
      if (running()) await searchTools.describe(planned());
      if (!running()) return undefined;
      if (declared) {
        restoreDue = false;
        await restoreBranch(declared, options);
      }
      return running() && searchTools.news(ctx.sessionManager, planned());
    },
    branchChanged: () => {
      restoreDue = true;
    },
  };
}
