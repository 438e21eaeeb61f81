/** The known key that an unknown one was probably meant to be. Pure. */

/** Words of other programs for what has another name here. */
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

/** Longest key that is compared: a hostile file must not make this slow. */
const COMPARED_CHARS = 40;

/** Edits (insert, delete, replace, swap of neighbours) between two words. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min((row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

const plain = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, "");

/** Of known keys, which are few and compared with each unknown one. */
const plainKnown = new Map<string, string>();

function plainOf(known: string): string {
  const text = plainKnown.get(known) ?? plain(known);
  plainKnown.set(known, text);
  return text;
}

/** Undefined where nothing known is near: at most two edits, or a third of the word. */
export function nearestKey(key: string, known: readonly string[]): string | undefined {
  if (key.length > COMPARED_CHARS) return undefined;
  const other = Object.hasOwn(OTHER_WORDS, key) ? OTHER_WORDS[key] : undefined;
  if (other !== undefined && known.includes(other)) return other;
  const limit = Math.min(2, Math.floor(key.length / 3));
  const wanted = plain(key);
  let best: { key: string; edits: number } | undefined;
  for (const candidate of known) {
    const offered = plainOf(candidate);
    // Each character more or less is an edit.
    if (Math.abs(wanted.length - offered.length) > limit) continue;
    const edits = editDistance(wanted, offered);
    if (edits <= limit && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) best = { key: candidate, edits };
  }
  return best?.key;
}
