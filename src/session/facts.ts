/** What main tells every worker of a session: the first one, and each one that follows a crash. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { McpRegistration, Pi, PiContext } from "../pi/api.ts";
import { CONFIG_FLAG, configFileOf } from "../pi/extension.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import { fileStamp } from "../shared/protocol/values.ts";

/** Copies the fields that can be cloned into the worker. */
export const toRegistered = (servers: readonly McpRegistration[]): SessionFacts["registered"] =>
  servers.map(({ name, config, extensionPath }) => ({ name, config, extensionPath }));

/** A file that cannot be examined gets a stamp that no file has. */
function stampOf(path: string): string {
  try {
    return fileStamp(statSync(path, { throwIfNoEntry: false }));
  } catch {
    return "unreadable";
  }
}

/** The facts that stay the same for the whole session. */
export type StartFacts = Pick<
  SessionFacts,
  "agentDir" | "cwd" | "projectTrusted" | "configPath" | "canAsk" | "hints" | "projectFile" | "startedAtMs"
>;

/**
 * The stamp of `.pi/mcp.json` (`projectFile`) is taken before the model can have written the file, and every worker of
 * the session gets this same stamp.
 */
export const startFacts = (pi: Pi, ctx: PiContext, agentDir: string): StartFacts => ({
  agentDir,
  cwd: ctx.cwd,
  projectTrusted: ctx.isProjectTrusted(),
  configPath: configFileOf(pi.getFlag(CONFIG_FLAG), ctx.cwd),
  canAsk: ctx.hasUI,
  hints: ctx.hasUI,
  projectFile: stampOf(join(ctx.cwd, ".pi", "mcp.json")),
  startedAtMs: Date.now(),
});
