/** What a definition, the settings and the limits of a session decide about a server's life. Pure. */

import type { SessionLimits } from "../../../src/shared/protocol/session.ts";
import type { CloseTimes } from "../../shared/pace/pace.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { idleMinutesOf } from "../config/entry/override.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { LifecyclePolicy } from "./state.ts";

/** The limits of a server's life that a session may be given. */
export type ServerLimits = Omit<SessionLimits, "publishMs" | "publishAloneMs">;

export function lifecyclePolicy(
  definition: Pick<ServerDefinition, "lifecycle" | "idleTimeoutMinutes">,
  { idleTimeout }: Pick<Settings, "idleTimeout">,
  { reconnectMs }: Pick<ServerLimits, "reconnectMs">,
): LifecyclePolicy {
  const idleTimeoutMs = idleMinutesOf(definition, idleTimeout) * 60_000;
  return { lifecycle: definition.lifecycle, idleTimeoutMs, reconnectMs };
}

/** For a connection that another may replace while the session goes on. */
export const closeTimes = ({
  closeTermMs,
  closeKillMs,
}: Pick<ServerLimits, "closeTermMs" | "closeKillMs">): CloseTimes => ({
  termMs: closeTermMs,
  killMs: closeKillMs,
});
