/** What every worker of a session is told of it, the first and each that takes a crashed one's place. */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { McpRegistration, Pi, PiContext } from "../pi/api.ts";
import { CONFIG_FLAG, configFileOf } from "../pi/config-flag.ts";
import { fileStamp } from "../shared/protocol/file-stamp.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";

/** Only what can be cloned into the worker. */
export const toRegistered = (servers: readonly McpRegistration[]): SessionFacts["registered"] =>
  servers.map(({ name, config, extensionPath }) => ({ name, config, extensionPath }));

/** A file that cannot be looked at has a stamp that no file has. */
function stampOf(path: string): string {
  try {
    return fileStamp(statSync(path, { throwIfNoEntry: false }));
  } catch {
    return "unreadable";
  }
}

/** What stays as it was when the session started. */
export type StartFacts = Pick<
  SessionFacts,
  | "generation"
  | "agentDir"
  | "cwd"
  | "projectTrusted"
  | "configPath"
  | "canAsk"
  | "projectFile"
  | "startedAtMs"
>;

/** `projectFile`: before the model can have written it; the same for every worker of this session. */
export const startFacts = (
  pi: Pi,
  ctx: PiContext,
  { generation, agentDir }: Pick<SessionFacts, "generation" | "agentDir">,
): StartFacts => ({
  generation,
  agentDir,
  cwd: ctx.cwd,
  projectTrusted: ctx.isProjectTrusted(),
  configPath: configFileOf(pi.getFlag(CONFIG_FLAG), ctx.cwd),
  canAsk: ctx.hasUI,
  projectFile: stampOf(join(ctx.cwd, ".pi", "mcp.json")),
  startedAtMs: Date.now(),
});
