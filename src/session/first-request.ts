/**
 * What the next request to the model must hold, brought about before it is made: ToolSearch names the servers,
 * direct tools are declared, and the branch's tools are there again. Waits for the worker where only that can
 * tell, and never for long.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import type { Catalog, CatalogStore } from "../catalog/catalog.ts";
import { holdsToolsOf, snapshotIsOlder } from "../catalog/catalog.ts";
import type { Pi, PiContext } from "../pi/api.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";
import type { SnapshotServer } from "../shared/snapshot/contract.ts";
import type { SnapshotPlace } from "../shared/snapshot/file-name.ts";
import type { DirectRule, Registrar } from "../tools/registry/registry.ts";
import { type DeclaredTool, declaredTools, serverByName } from "../tools/registry/registry.ts";
import type { SearchTools } from "../tools/tools.ts";
import type { SessionState } from "./events.ts";

/** How long a session waits for what only the worker can tell, in milliseconds: by default the `LIMITS` of these names. */
export interface SessionWaits {
  searchWaitMs: number;
  directWaitMs: number;
  firstPlanWaitMs: number;
}

export interface FirstRequestOptions {
  agentDir: string;
  /** What the snapshot is of. */
  place: () => SnapshotPlace;
  store: CatalogStore;
  registrar: Registrar;
  searchTools: SearchTools;
  direct: DirectRule;
  /** Undefined once the session is over: then nothing of Pi may be touched. */
  running: () => (SessionState & { runtime: Runtime }) | undefined;
  waits: Pick<SessionWaits, "directWaitMs" | "firstPlanWaitMs">;
}

export interface FirstRequest {
  /** Before each prompt. */
  prepare(ctx: PiContext): Promise<void>;
  /** The branch is another one now, or the session a new one. */
  branchChanged(): void;
  /** Tools of servers that the plan does not have, or has disabled, are not for the model. */
  withdrawAbsent(state: SessionState): void;
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

export function createFirstRequest(pi: Pi, options: FirstRequestOptions): FirstRequest {
  const { agentDir, place, store, registrar, searchTools, direct, running, waits } = options;
  let restoreDue = true;

  /** Settles with the plan, or after `ms`. */
  const planWithin = async (ms: number): Promise<void> => {
    await Promise.race([running()?.planned.promise, elapsed(ms)]);
  };

  /** Without a snapshot ToolSearch cannot name the servers yet. */
  const describeServers = async (): Promise<void> => {
    if (searchTools.complete()) return;
    await planWithin(waits.firstPlanWaitMs);
    const session = running();
    if (!session) return;
    if (store.checksum() !== undefined) searchTools.declare(store.current());
    else if (session.settings) searchTools.declarePlan([...session.statuses.values()], session.settings);
  };

  /** The user's and the project's own files, and whatever else the snapshot was made of. */
  const configFiles = (): string[] => [
    join(agentDir, "mcp.json"),
    join(homedir(), ".config", "mcp", "mcp.json"),
    join(place().cwd, ".mcp.json"),
    join(place().cwd, ".pi", "mcp.json"),
    ...store.current().settings.files,
  ];

  /** Whether the plan can hold no server that the snapshot does not, and none less. */
  const snapshotIsSure = (): boolean => {
    if (store.checksum() === undefined) return false;
    const { servers } = store.current();
    // Whether a project's server may still run, and how other extensions define theirs, only the plan tells.
    if (servers.some(({ project }) => project)) return false;
    const known = new Set(servers.map(({ name }) => name));
    if (pi.getMcpServers().some(({ name }) => !known.has(name))) return false;
    return !snapshotIsOlder(agentDir, place(), configFiles());
  };

  /** Servers that have direct tools and never told them are waited for. */
  const awaitDirectTools = async (): Promise<void> => {
    const endsAt = performance.now() + waits.directWaitMs;
    if (running()?.settings === undefined && !snapshotIsSure()) await planWithin(waits.directWaitMs);
    const session = running();
    if (!session) return;
    const servers = [...session.statuses.values()]
      .filter((server) => direct.concerns(server.name, server.direct) && isLearning(server, store.current))
      .map(({ name }) => name);
    if (servers.length === 0) return;
    const timeoutMs = Math.max(0, endsAt - performance.now());
    const { checksum } = await session.runtime.settleTools({ timeoutMs, servers }, undefined);
    await store.reached(checksum);
    if (running()) registrar.follow(store.current, true);
  };

  const serverOf = ({ name: toolName, owner }: DeclaredTool): SnapshotServer | undefined => {
    const known = [...store.current().servers];
    for (const { name } of running()?.statuses.values() ?? []) {
      known.push({ name, project: false, toolsKnown: false });
    }
    return owner ? known.find(({ name }) => name === owner.server) : serverByName(toolName, known);
  };

  const withdrawAbsent = ({ statuses, settings }: SessionState): void => {
    if (settings === undefined) return;
    const isThere = (name: string): boolean => {
      const state = statuses.get(name)?.state;
      return state !== undefined && state !== "disabled";
    };
    registrar.withdrawActive(({ server }) => !isThere(server.name));
  };

  const restoreBranch = async (ctx: PiContext): Promise<void> => {
    registrar.registerDirect(store.current());
    const declared = declaredTools(ctx.sessionManager.getBranch());
    if (registrar.restore(declared, store.current(), serverOf) > 0) {
      // Whose the others are, only the plan tells; Pi would drop them for good.
      await planWithin(waits.directWaitMs);
      if (!running()) return;
      registrar.restore(declared, store.current(), serverOf);
    }
    const session = running();
    if (session) withdrawAbsent(session);
  };

  return {
    prepare: async (ctx) => {
      if (!running()) return;
      await describeServers();
      await awaitDirectTools();
      if (!restoreDue || !running()) return;
      restoreDue = false;
      await restoreBranch(ctx);
    },
    branchChanged: () => {
      restoreDue = true;
    },
    withdrawAbsent,
  };
}

export function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
