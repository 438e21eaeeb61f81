/**
 * Gives a resumed, forked or switched branch the tools that it has declared to the model. They must be registered by
 * the end of `before_agent_start`, or Pi drops them for good.
 */
import type { CatalogStore } from "../catalog/store.ts";
import type { SnapshotServer } from "../shared/snapshot/contract.ts";
import { type DeclaredTool, serverByName } from "../tools/branch.ts";
import type { Registrar } from "../tools/registrar.ts";
import { planWithin, type SessionState, type SessionWaits, serversOf, type WhileRunning } from "./running.ts";

export interface RestoreOptions {
  store: Pick<CatalogStore, "current">;
  registrar: Pick<Registrar, "registerDirect" | "restore" | "withdrawActive">;
  running: WhileRunning<SessionState>;
  waits: Pick<SessionWaits, "directWaitMs">;
}

/** Withdraws the active tools of servers that the plan does not name, or that it names as disabled. */
export function withdrawAbsent(
  registrar: Pick<Registrar, "withdrawActive">,
  { statuses, settings }: Pick<SessionState, "statuses" | "settings">,
): void {
  if (settings === undefined) return;
  registrar.withdrawActive(({ server }) => (statuses.get(server.name)?.state ?? "disabled") === "disabled");
}

/** The server of a declared tool: the transcript names it, or the tool's name begins with it. */
export function ownerOf(
  { name: toolName, owner }: DeclaredTool,
  { store, running }: Pick<RestoreOptions, "store" | "running">,
): SnapshotServer | undefined {
  const planned = serversOf(running()).map(({ name }) => ({ name, project: false, toolsKnown: false }));
  const known: SnapshotServer[] = [...store.current().servers, ...planned];
  return owner ? known.find(({ name }) => name === owner.server) : serverByName(toolName, known);
}

export async function restoreBranch(
  declared: ReadonlyMap<string, DeclaredTool>,
  options: RestoreOptions,
): Promise<void> {
  const { store, registrar, running, waits } = options;
  registrar.registerDirect(store.current());
  const serverOf = (tool: DeclaredTool) => ownerOf(tool, options);
  const restore = (): number => registrar.restore(store.current(), { declared, serverOf });
  if (restore() > 0) {
    // Only the plan knows the servers of the other tools.
    await planWithin(running, waits.directWaitMs);
    if (!running()) return;
    restore();
  }
  const session = running();
  if (session) withdrawAbsent(registrar, session);
}
