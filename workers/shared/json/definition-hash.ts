/**
 * The hash of a server definition: SHA-256 over the keys that decide which tools a server has. Keys are sorted, so
 * their order never matters; lifecycle, timeouts and `debug` stay out.
 *
 * The hashed text has the form of pi-mcp-adapter 2.36.0, so that both extensions read each other's entries: it holds
 * every key, absent ones as `undefined`, also the last three, which only that adapter knows.
 */
import { createHash } from "node:crypto";

export const HASHED_KEYS = [
  "args",
  "auth",
  "bearerToken",
  "bearerTokenEnv",
  "command",
  "cwd",
  "env",
  "excludeTools",
  "exposeResources",
  "headers",
  "includeTools",
  "url",
  "protocolVersion",
  "requestHeadersCommand",
  "socket",
] as const;

/**
 * Key of the session's folder, for a server that would be another program in another folder. Any other definition lacks
 * the key, so that its hash equals the adapter's. No file can set it: see cache-identity.ts.
 */
export const FOLDER_KEY = "#folder";

/**
 * Key that the adapter does not hash. With other rights or another client a server may list other tools, so a
 * definition that has the key has a hash of its own.
 */
export const OAUTH_KEY = "oauth";

/** JSON with sorted keys that writes `undefined` for an absent value, as the adapter does. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "undefined";
}

/** Hex SHA-256 of one definition as it stands in the file, before interpolation, so without resolved secrets. */
export function hashDefinition(definition: Record<string, unknown>): string {
  const hashed = Object.fromEntries(HASHED_KEYS.map((key) => [key, definition[key]]));
  for (const key of [FOLDER_KEY, OAUTH_KEY]) {
    const value = definition[key];
    if (value !== undefined) hashed[key] = value;
  }
  return createHash("sha256").update(canonical(hashed)).digest("hex");
}

/** The hashes of several definitions, in their order. */
export function hashDefinitions(definitions: readonly Record<string, unknown>[]): string[] {
  return definitions.map(hashDefinition);
}
