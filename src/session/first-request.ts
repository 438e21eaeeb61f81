/**
 * What the next request to the model must hold, prepared before Pi makes the request: ToolSearch names the servers,
 * direct tools are declared, the branch's tools are registered, and the model is told of servers that have changed. Waits
 * for the worker only where nobody else knows the answer, and within limits.
 */

import { type Catalog, holdsToolsOf } from "../catalog/catalog.ts";
import type { CatalogStore } from "../catalog/store.ts";
import type { AddedMessage, Pi, PiContext } from "../pi/api.ts";
import type { Runtime } from "../runtime/contract.ts";
import { messageOf } from "../shared/protocol/errors.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";
import type { SnapshotServer } from "../shared/snapshot/contract.ts";
import type { DirectRule } from "../tools/book.ts";
import { type DeclaredTool, declaredTools, OFF_ENTRY, serverByName } from "../tools/branch.ts";
import type { Registrar } from "../tools/registrar.ts";
import type { Planned, SearchTools } from "../tools/tools.ts";
import type { SnapshotOptions } from "./rest.ts";
import {
  askedPlanWithin,
  planWithin,
  type Running,
  type SessionState,
  type SessionWaits,
  serversOf,
  type WhileRunning,
} from "./running.ts";

interface AwaitDirectOptions extends SnapshotOptions {
  store: CatalogStore;
  registrar: Pick<Registrar, "follow">;
  direct: DirectRule;
  running: WhileRunning<Pick<Running, "planned" | "settings" | "statuses" | "runtime" | "awaited">>;
  waits: Pick<SessionWaits, "directWaitMs">;
}

/**
 * Whether the catalog lacks the server's tools and will soon have them: the server connects, is about to connect,
 * or has just listed its tools.
 */
export const isLearning = (
  { name, toolsKnown, state }: ServerStatus,
  catalog: () => Pick<Catalog, "servers">,
): boolean =>
  toolsKnown
    ? state !== "disabled" && !holdsToolsOf(catalog(), name)
    : state === "connecting" || state === "idle";

/**
 * Waits for the plan if the snapshot is not sure, then for the servers whose direct tools are unknown. A server that fails
 * is connected again after each turn: it is waited for once, and its direct tools come with their catalog.
 */
async function awaitDirectTools(pi: Pi, options: AwaitDirectOptions): Promise<void> {
  const { store, registrar, direct, running, waits } = options;
  const endsAt = performance.now() + waits.directWaitMs;
  if (running()?.settings === undefined) {
    const { snapshotIsSure } = await import("./rest.ts");
    if (!snapshotIsSure(pi, options)) await planWithin(running, waits.directWaitMs);
  }
  const session = running();
  if (!session) return;
  const servers = serversOf(session)
    .filter((server) => direct.concerns(server.name, server.direct) && isLearning(server, store.current))
    .map(({ name }) => name)
    .filter((name) => !session.awaited.has(name));
  if (servers.length === 0) return;
  const timeoutMs = Math.max(0, endsAt - performance.now());
  try {
    await session.runtime.settleTools({ timeoutMs, servers }, undefined);
  } catch (error) {
    // The prompt goes on without these tools: the worker ended, or answers late on a slow machine.
    session.runtime.log("warn", messageOf(error));
  }
  for (const name of servers) if (!holdsToolsOf(store.current(), name)) session.awaited.add(name);
  if (running()) registrar.follow(store.current, true);
}

interface RestoreOptions {
  store: Pick<CatalogStore, "current">;
  registrar: Pick<Registrar, "follow" | "restore" | "withdrawActive" | "withdrawAll">;
  running: WhileRunning<SessionState & Pick<Running, "runtime">>;
  waits: Pick<SessionWaits, "directWaitMs">;
}

/**
 * Withdraws the active tools of servers that the plan does not name, or that it names as disabled, and all tools of a
 * project's servers that it does not name: they must not run now, and the factory may have registered them.
 */
export function withdrawAbsent(
  registrar: Pick<Registrar, "withdrawActive" | "withdrawAll">,
  { statuses, settings }: Pick<SessionState, "statuses" | "settings">,
): void {
  if (settings === undefined) return;
  registrar.withdrawActive(({ server }) => (statuses.get(server.name)?.state ?? "disabled") === "disabled");
  registrar.withdrawAll(({ server }) => server.project && !statuses.has(server.name));
}

/** The server of a declared tool: the transcript names it, or the tool's name begins with it. */
function ownerOf(
  { name: toolName, owner }: DeclaredTool,
  { store, running }: Pick<RestoreOptions, "store" | "running">,
): SnapshotServer | undefined {
  const planned = serversOf(running()).map(({ name }) => ({ name, project: false, toolsKnown: false }));
  const known: SnapshotServer[] = [...store.current().servers, ...planned];
  return owner ? known.find(({ name }) => name === owner.server) : serverByName(toolName, known);
}

async function restoreBranch(
  declared: ReadonlyMap<string, DeclaredTool>,
  options: RestoreOptions,
): Promise<void> {
  const { store, registrar, running, waits } = options;
  // Pi has the tools as the factory or another branch left them.
  registrar.follow(store.current, true);
  const serverOf = (tool: DeclaredTool) => ownerOf(tool, options);
  const restore = (): number => registrar.restore(store.current(), { declared, serverOf });
  if (restore() > 0) {
    // Only the plan knows the servers of the other tools.
    await askedPlanWithin(running, waits.directWaitMs);
    if (!running()) return;
    restore();
  }
  const session = running();
  if (session) withdrawAbsent(registrar, session);
}

/** Undefined: nothing was ever off. */
const lostTools = (pi: Pi, entries: readonly unknown[], branch: readonly unknown[]) =>
  entries.some((entry) => (entry as { customType?: unknown } | null)?.customType === OFF_ENTRY)
    ? import("../tools/taken.ts").then(({ isLost }) => isLost(pi, entries, branch))
    : undefined;

interface FirstRequestOptions extends AwaitDirectOptions {
  registrar: Pick<Registrar, "follow" | "restore" | "withdrawActive" | "withdrawAll">;
  searchTools: Pick<SearchTools, "complete" | "describe" | "keep" | "news">;
  running: WhileRunning<
    Pick<Running, "planned" | "settings" | "statuses" | "accepted" | "runtime" | "awaited">
  >;
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
      const branch = restoreDue ? ctx.sessionManager.getBranch() : undefined;
      const lost = branch && lostTools(pi, ctx.sessionManager.getEntries(), branch);
      const declared = branch && declaredTools(branch);
      if (declared) searchTools.keep(declared);
      // Without a snapshot ToolSearch names the servers of the plan.
      if (!searchTools.complete()) await planWithin(running, options.waits.firstPlanWaitMs);
      await awaitDirectTools(pi, options);
      if (running()) await searchTools.describe(planned());
      const isLost = await lost;
      if (!running()) return undefined;
      if (declared) {
        restoreDue = false;
        if (isLost) options.registrar.withdrawAll(isLost, true);
        await restoreBranch(declared, options);
        // The model has tools of servers, so a call is near: a worker that is not needed yet starts meanwhile.
        if ([...declared.values()].some(({ owner }) => owner)) running()?.runtime.post("ping", {});
      }
      return running() && searchTools.news(ctx.sessionManager, planned());
    },
    branchChanged: () => {
      restoreDue = true;
    },
  };
}
