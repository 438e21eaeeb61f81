/** What a definition, the settings and the limits of a session decide about a server's life. Pure. */

import type { SessionLimits } from "../../../src/shared/protocol/session.ts";
import type { CloseTimes } from "../../shared/programs/close-times.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { LifecyclePolicy } from "./state.ts";

/** The limits of a server's life that a session may be given. */
export type ServerLimits = Omit<SessionLimits, "publishMs" | "publishAloneMs">;

/** The setting `idleTimeout`, in minutes, is for lazy servers; a definition may set a time for any server. */
export function lifecyclePolicy(
  { lifecycle, idleTimeoutMinutes }: Pick<ServerDefinition, "lifecycle" | "idleTimeoutMinutes">,
  { idleTimeout }: Pick<Settings, "idleTimeout">,
  { reconnectMs }: Pick<ServerLimits, "reconnectMs">,
): LifecyclePolicy {
  const minutes = idleTimeoutMinutes ?? (lifecycle === "lazy" ? idleTimeout : 0);
  return { lifecycle, idleTimeoutMs: minutes * 60_000, reconnectMs };
}

/** For a connection that another may replace while the session goes on. */
export const closeTimes = ({
  closeTermMs,
  closeKillMs,
}: Pick<ServerLimits, "closeTermMs" | "closeKillMs">): CloseTimes => ({
  termMs: closeTermMs,
  killMs: closeKillMs,
});
