/** What an event of the worker means for the panel. Pure. */
import type { WorkerEvent } from "../../shared/protocol/events.ts";
import type { View } from "./model/model.ts";

/** Events that change nothing of the panel. */
const UNSEEN: readonly WorkerEvent["type"][] = ["spawned", "exited", "talker", "progress", "renewing"];
/** Events after which the open view is read again. */
const READ_AGAIN: readonly WorkerEvent["type"][] = ["catalog", "removed", "planned", "server"];

export const isSeen = ({ type }: WorkerEvent): boolean => !UNSEEN.includes(type);

/** Whether the tools may be others, so that their costs are counted again. */
export const changesTools = ({ type }: WorkerEvent): boolean =>
  type === "catalog" || type === "removed" || type === "planned";

/** Whether what the view shows has to be read again. */
export function concerns(event: WorkerEvent, view: View): boolean {
  if (!READ_AGAIN.includes(event.type) || view.name === "stats" || view.name === "doctor") return false;
  return event.type !== "server" || ("server" in view && view.server === event.status.name);
}
