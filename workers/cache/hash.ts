/**
 * The fingerprint of a server definition: SHA-256 over the keys that decide which tools a server has.
 * Keys are sorted, so their order never matters; lifecycle, timeouts and `debug` stay out.
 */
import { createHash } from "node:crypto";

const HASHED_KEYS = [
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
] as const;

/** JSON with the keys of every object sorted. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, entry]) => entry !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${canonical(entry)}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** Hex SHA-256 of one definition as it stands in the file, before interpolation: no secret is resolved. */
export function hashDefinition(definition: Record<string, unknown>): string {
  const hashed = Object.fromEntries(
    HASHED_KEYS.filter((key) => definition[key] !== undefined).map((key) => [key, definition[key]]),
  );
  return createHash("sha256").update(canonical(hashed)).digest("hex");
}

/** Hashes by position. */
export function hashDefinitions(definitions: readonly Record<string, unknown>[]): string[] {
  return definitions.map(hashDefinition);
}
