/** What a definition and the settings decide about a server's life. Pure. */
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { LifecyclePolicy } from "./state.ts";

/** The setting `idleTimeout`, in minutes, is for lazy servers; a definition may set a time for any server. */
export function lifecyclePolicy(
  { lifecycle, idleTimeoutMinutes }: Pick<ServerDefinition, "lifecycle" | "idleTimeoutMinutes">,
  { idleTimeout }: Pick<Settings, "idleTimeout">,
): LifecyclePolicy {
  const minutes = idleTimeoutMinutes ?? (lifecycle === "lazy" ? idleTimeout : 0);
  return { lifecycle, idleTimeoutMs: minutes * 60_000 };
}
