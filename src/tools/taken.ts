/** The tools that servers took out of a branch when they were switched off, read from the transcript. */
import type { CatalogTool } from "../catalog/catalog.ts";
import type { Pi } from "../pi/api.ts";
import { asList, isObject } from "../shared/protocol/values.ts";
import { OFF_ENTRY } from "./branch.ts";

/**
 * The tools that have left the branch while servers were off, with the names of those servers: such a server took its own
 * tools with it, because a user can deactivate only what is active. `entries`: those of all branches, the oldest first,
 * because a server is off on every branch.
 */
export function takenByOff(
  entries: readonly unknown[],
  branch: readonly unknown[],
): Map<string, ReadonlySet<unknown>> {
  const taken = new Map<string, ReadonlySet<unknown>>();
  const onBranch = new Set(branch);
  let off: ReadonlySet<unknown> = new Set();
  for (const entry of entries) {
    if (!isObject(entry)) continue;
    if (entry.customType === OFF_ENTRY) off = new Set(isObject(entry.data) ? asList(entry.data.off) : []);
    const message = entry.type === "message" && onBranch.has(entry) ? entry.message : undefined;
    if (!isObject(message) || message.role !== "system") continue;
    for (const tool of asList(message.toolsRemoved)) {
      if (isObject(tool) && typeof tool.name === "string" && off.size > 0) taken.set(tool.name, off);
    }
    for (const tool of asList(message.toolsAdded)) {
      if (isObject(tool) && typeof tool.name === "string") taken.delete(tool.name);
    }
  }
  return taken;
}

/** Tells which tools the model has lost on this branch together with their server. */
export function isLost(
  pi: Pick<Pi, "getActiveTools">,
  ...of: Parameters<typeof takenByOff>
): (tool: CatalogTool) => boolean {
  const taken = takenByOff(...of);
  return ({ name, server }) =>
    taken.get(name)?.has(server.name) === true && !pi.getActiveTools().includes(name);
}
