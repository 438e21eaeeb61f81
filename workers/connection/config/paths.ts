/** Where configuration and our own files lie. Pure. */
import { join } from "node:path";
import type { SessionFacts } from "../../../src/protocol/types.ts";

export interface ConfigSource {
  file: string;
  /** Whether the file belongs to the project, which is untrusted until Pi says otherwise. */
  project: boolean;
}

/** Files to read, lowest precedence first. */
export function configSources(
  facts: Pick<SessionFacts, "agentDir" | "cwd" | "projectTrusted">,
): ConfigSource[] {
  const user = { file: join(facts.agentDir, "mcp.json"), project: false };
  const project = { file: join(facts.cwd, ".pi", "mcp.json"), project: true };
  return facts.projectTrusted ? [user, project] : [user];
}

export const cacheFile = (agentDir: string): string => join(agentDir, "mcp-cache.json");

export const npxCacheFile = (agentDir: string): string => join(agentDir, "mcp-npx-cache.json");
