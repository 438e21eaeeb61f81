/**
 * Owns: what an edit does while a session is open: files are followed, an edit can wait for the user, and files are
 * remembered as they were applied. Must not: know servers or what a plan does. Called by: config.ts.
 * follow.ts and the file watcher behind it are loaded after the first plan, which needs neither.
 */
import type { LiveConfig, LiveOptions } from "./follow.ts";

export { type EnvWatch, watchEnvFiles } from "./env-watch.ts";
export type { LiveConfig } from "./follow.ts";
export { asApplied, asKept, type OwnWrite, textsToKeep } from "./frozen-files.ts";
export { createHeldEdit, type HeldEdit } from "./held-edit.ts";

/** Follows the files of `first` until it is closed. */
export async function followConfig(options: LiveOptions): Promise<LiveConfig> {
  return (await import("./follow.ts")).followConfig(options);
}
