/**
 * The wait for direct tools before the first request: the model must have them from its first request on, also if
 * their server is new since the snapshot. Bounded by `waits.directWaitMs`.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { type Catalog, holdsToolsOf } from "../catalog/catalog.ts";
import { type CatalogStore, snapshotIsOlder } from "../catalog/store.ts";
import type { Pi } from "../pi/api.ts";
import { messageOf } from "../shared/protocol/errors.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";
import type { SnapshotKey } from "../shared/snapshot/contract.ts";
import type { DirectRule } from "../tools/book.ts";
import type { Registrar } from "../tools/registrar.ts";
import { planWithin, type Running, type SessionWaits, serversOf, type WhileRunning } from "./running.ts";

export interface AwaitDirectOptions {
  agentDir: string;
  /** Names the snapshot that the session shows. */
  key: () => SnapshotKey;
  store: CatalogStore;
  registrar: Pick<Registrar, "follow">;
  direct: DirectRule;
  running: WhileRunning<Pick<Running, "planned" | "settings" | "statuses" | "runtime">>;
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

/** The user's and the project's own files, and every other file that the snapshot was made of. */
const configFiles = ({ agentDir, key, store }: AwaitDirectOptions): string[] => [
  join(agentDir, "mcp.json"),
  join(homedir(), ".config", "mcp", "mcp.json"),
  join(key().cwd, ".mcp.json"),
  join(key().cwd, ".pi", "mcp.json"),
  ...store.current().settings.files,
];

/** Whether the plan is sure to name the same servers as the snapshot. */
function snapshotIsSure(pi: Pi, options: AwaitDirectOptions): boolean {
  const { agentDir, key, store } = options;
  if (store.checksum() === undefined) return false;
  const { servers } = store.current();
  // Only the plan says whether a project's server may still run, and how other extensions define their servers.
  if (servers.some(({ project }) => project)) return false;
  const known = new Set(servers.map(({ name }) => name));
  if (pi.getMcpServers().some(({ name }) => !known.has(name))) return false;
  return !snapshotIsOlder(agentDir, key(), configFiles(options));
}

/** Waits for the plan if the snapshot is not sure, then for the servers whose direct tools are unknown. */
export async function awaitDirectTools(pi: Pi, options: AwaitDirectOptions): Promise<void> {
  const { store, registrar, direct, running, waits } = options;
  const endsAt = performance.now() + waits.directWaitMs;
  if (running()?.settings === undefined && !snapshotIsSure(pi, options)) {
    await planWithin(running, waits.directWaitMs);
  }
  const session = running();
  if (!session) return;
  const servers = serversOf(session)
    .filter((server) => direct.concerns(server.name, server.direct) && isLearning(server, store.current))
    .map(({ name }) => name);
  if (servers.length === 0) return;
  const timeoutMs = Math.max(0, endsAt - performance.now());
  try {
    await session.runtime.settleTools({ timeoutMs, servers }, undefined);
  } catch (error) {
    // The prompt goes on without these tools: the worker ended, or answers late on a slow machine.
    session.runtime.log("warn", messageOf(error));
  }
  if (running()) registrar.follow(store.current, true);
}
