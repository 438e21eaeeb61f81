/**
 * Reports the whole effect of a configuration change in one line, once main can show it: `mcp.json: + db (3 tools)`.
 * Called by: session.ts, for each change after the first plan.
 */
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import type { Log } from "../../shared/log.ts";
import type { CatalogPublisher } from "../catalog/catalog.ts";
import { describeEffect, type Plan } from "../config/plan/plan.ts";
import type { Supervisor } from "../servers/supervisor.ts";
import { startedBy } from "./carry-out.ts";

/** A change is reported when the servers that it started have settled, but not later than this. */
const NOTICE_WAIT_MS = 10_000;

export interface EffectNoticeOptions {
  supervisor: Pick<Supervisor, "servers" | "settleTools">;
  catalog: Pick<CatalogPublisher, "withdraw" | "flush">;
  log: Log;
  emit: (event: WorkerEvent) => void;
  /** Fires when the session ends: nothing is reported then. */
  signal: AbortSignal;
}

/** Never rejects: what goes wrong is in the log. */
export async function reportEffect(change: Plan, options: EffectNoticeOptions): Promise<void> {
  const { supervisor, log, emit } = options;
  try {
    if (!(await isShown(change, options))) return;
    const text = describeEffect(change, toolCounts(supervisor.servers));
    if (text === undefined) return;
    log.info(text);
    emit({ type: "notice", text, level: "info" });
  } catch (error) {
    log.error(`telling a change failed: ${(error as Error).message}`);
  }
}

/**
 * Settles when main has what the notice says, so that it is true when a person reads it. A server that was replaced
 * shows its old tools until the new one has listed its own. False: the session ended meanwhile.
 */
async function isShown(change: Plan, { supervisor, catalog, signal }: EffectNoticeOptions): Promise<boolean> {
  if (catalog.withdraw() && startedBy(change).length === 0) return true;
  await supervisor.settleTools({ timeoutMs: NOTICE_WAIT_MS }, signal);
  if (signal.aborted) return false;
  await catalog.flush();
  return true;
}

/** Name -> number of tools, for the servers whose tools are known. */
const toolCounts = (servers: Supervisor["servers"]): Map<string, number> =>
  new Map(servers.flatMap(({ name, tools }) => (tools ? [[name, tools.length] as const] : [])));
