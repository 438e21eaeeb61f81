/** The session as the tools see it that find and call other tools (`ToolHost`). */
import type { CatalogStore } from "../catalog/store.ts";
import { LIMITS } from "../shared/protocol/limits.ts";
import type { ToolHost } from "../tools/host.ts";
import type { Registrar } from "../tools/registrar.ts";
import type { Instructions } from "../tools/told.ts";
import type { SessionCalls } from "./calls.ts";
import { isLearning } from "./first-request.ts";
import { type Running, type SessionWaits, serversOf, type WhileRunning, within } from "./running.ts";

export interface ToolHostOptions {
  store: Pick<CatalogStore, "current">;
  registrar: Pick<Registrar, "activate" | "provide">;
  calls: Pick<SessionCalls, "forModel">;
  instructions: Pick<Instructions, "tell">;
  running: WhileRunning;
  /** Throws `runtime_stopped` after the session's end. */
  runningOrThrow: () => Running;
  waits: Pick<SessionWaits, "searchWaitMs">;
}

export function createToolHost(options: ToolHostOptions): ToolHost {
  const { store, registrar, calls, instructions, running, runningOrThrow, waits } = options;
  return {
    settle: async (signal, servers) => {
      const { runtime, settings, statuses } = runningOrThrow();
      const wanted = [...statuses.values()].filter(({ name }) => servers?.includes(name) ?? true);
      // What is known needs no answer of the worker. Before the first plan nothing is.
      if (settings && !wanted.some((server) => isLearning(server, store.current))) return [];
      return runtime.settleTools({ timeoutMs: waits.searchWaitMs, ...(servers ? { servers } : {}) }, signal);
    },
    catalog: store.current,
    servers: () => serversOf(running()),
    activate: registrar.activate,
    provide: registrar.provide,
    forModel: calls.forModel,
    tell: instructions.tell,
    connect: async (server, signal) => {
      await runningOrThrow().runtime.ask("reconnect", { server }, signal);
    },
    matchTools: async (params) => runningOrThrow().runtime.ask("matchTools", params),
    log: (message) => running()?.runtime.log("info", message),
    // Without a worker the reason stays unknown; the call that asks for it has failed already.
    whyMissing: async (name) =>
      within(
        running()
          ?.runtime.ask("explainMissing", { name })
          .catch(() => undefined),
        LIMITS.rpcShortMs,
      ),
  };
}
