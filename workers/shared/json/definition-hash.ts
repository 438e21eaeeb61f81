/**
 * The fingerprint of a server definition: SHA-256 over the keys that decide which tools a server has.
 * Keys are sorted, so their order never matters; lifecycle, timeouts and `debug` stay out.
 *
 * The form is the one of pi-mcp-adapter 2.36.0, so that each of us reads the other's entries: every key
 * stands in it, an absent one as `undefined`, also the last three, which only that adapter knows.
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
 * Holds the session's folder, in the definition of a server that is another program in another folder; in any other
 * definition the key is absent, so that its hash is the adapter's. No file can set it: see cache-identity.ts.
 */
export const FOLDER_KEY = "#folder";

/** JSON with the keys of every object sorted, and with `undefined` where a value is. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "undefined";
}

/** Hex SHA-256 of one definition as it stands in the file, before interpolation: no secret is resolved. */
export function hashDefinition(definition: Record<string, unknown>): string {
  const hashed = Object.fromEntries(HASHED_KEYS.map((key) => [key, definition[key]]));
  const folder = definition[FOLDER_KEY];
  if (folder !== undefined) hashed[FOLDER_KEY] = folder;
  return createHash("sha256").update(canonical(hashed)).digest("hex");
}

/** Hashes by position. */
export function hashDefinitions(definitions: readonly Record<string, unknown>[]): string[] {
  return definitions.map(hashDefinition);
}
