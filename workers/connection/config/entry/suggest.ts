/** Finds the known key that somebody probably meant by an unknown one. Pure. */
import { slipsBetween } from "../../../../src/shared/text/reading.ts";

/** Key of another program -> our key for the same thing. */
const OTHER_WORDS: Record<string, string> = {
  alwaysAllow: "directTools",
  bearer_token_env_var: "bearerTokenEnv",
  disabledTools: "excludeTools",
  disabled_tools: "excludeTools",
  enabledTools: "includeTools",
  enabled_tools: "includeTools",
  environment: "env",
  http_headers: "headers",
  mcp: "mcpServers",
  mcp_servers: "mcpServers",
  servers: "mcpServers",
  serverUrl: "url",
  startup_timeout_sec: "startupTimeoutMs",
  tool_timeout_sec: "timeout",
  transport: "type",
};

/** A longer key is not compared, so that a hostile file cannot make this slow. */
const COMPARED_CHARS = 40;

const plain = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, "");

/** The plain form of each known key. The known keys are few, and each is compared with every unknown key. */
const plainKnown = new Map<string, string>();

function plainOf(known: string): string {
  const text = plainKnown.get(known) ?? plain(known);
  plainKnown.set(known, text);
  return text;
}

/** Undefined if no known key is near. Near: one slip for every three letters of the word, two slips at most. */
export function nearestKey(key: string, known: readonly string[]): string | undefined {
  if (key.length > COMPARED_CHARS) return undefined;
  const other = Object.hasOwn(OTHER_WORDS, key) ? OTHER_WORDS[key] : undefined;
  if (other !== undefined && known.includes(other)) return other;
  const limit = Math.min(2, Math.floor(key.length / 3));
  const wanted = plain(key);
  let best: { key: string; slips: number } | undefined;
  for (const candidate of known) {
    const slips = slipsBetween(wanted, plainOf(candidate), limit);
    if (slips <= limit && slips < (best?.slips ?? Number.POSITIVE_INFINITY)) best = { key: candidate, slips };
  }
  return best?.key;
}
