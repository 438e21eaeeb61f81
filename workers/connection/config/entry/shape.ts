/** What the schemas of servers and settings share: shapes that are made key by key, and kinds of values. */
import * as z from "zod";
import type { ToolPrefix } from "../../../../src/shared/naming.ts";
import type { ServerStatus } from "../../../../src/shared/protocol/status.ts";

/** Our own values and Pi's: exposure.ts says what each means here. */
export const EXPOSURES = ["direct", "deferred", "codemode", "codemode-deferred", "hidden"] as const;

/** What becomes of a tool: declared to the model, found by ToolSearch, or withheld. */
export type Exposure = "direct" | "search" | "hidden";

export type Lifecycle = ServerStatus["lifecycle"];
export const LIFECYCLES = ["lazy", "eager", "keep-alive"] as const satisfies readonly Lifecycle[];

/** Which revisions of MCP are spoken: auto begins with the handshake of older ones, unless the server is known to be newer. */
export const PROTOCOLS = ["auto", "legacy", "2026-07-28"] as const;

export const TOOL_PREFIXES = ["server", "short", "none", "mcp"] as const satisfies readonly ToolPrefix[];

/** Which calls ask the user; approve.ts says what each word means. */
export const APPROVE_WORDS = ["never", "destructive", "always"] as const;
export const APPROVE_RULES = ["allow", "ask", "destructive", "deny"] as const;

/** Programs whose servers can be imported: hosts/dialects.ts has a row for each. */
export const HOSTS = [
  "cursor",
  "claude-code",
  "claude-desktop",
  "codex",
  "windsurf",
  "vscode",
  "opencode",
] as const;

export type HostName = (typeof HOSTS)[number];

/**
 * The shape of an object. The schema of a key is made when a file first has that key: most files have five of thirty
 * keys, and to make the others would delay the worker's first plan by 8 ms.
 */
export function lazily<M extends Record<string, () => z.ZodType>>(
  makers: M,
): { [K in keyof M]: ReturnType<M[K]> } {
  const shape = {};
  for (const [key, make] of Object.entries(makers)) {
    let made: z.ZodType | undefined;
    Object.defineProperty(shape, key, { enumerable: true, configurable: true, get: () => (made ??= make()) });
  }
  return shape as { [K in keyof M]: ReturnType<M[K]> };
}

/** The checked object: the keys of the shape, and any others as they are. */
export type Loose<S extends Record<string, z.ZodType>> = z.infer<z.ZodObject<S, z.core.$loose>>;

export const strings = z.record(z.string(), z.string());
export const names = z.array(z.string());

/** Limits of a result, in bytes and lines; false for no limit. */
export const outputGuard = () =>
  z.union([
    z.literal(false),
    z.looseObject({
      maxBytes: z
        .int()
        .min(1_000)
        .optional()
        .meta({ description: "Bytes of a result that the model sees.", examples: [50_000] }),
      maxLines: z
        .int()
        .min(10)
        .optional()
        .meta({ description: "Lines of a result that the model sees.", examples: [2_000] }),
    }),
  ]);

/** Which calls ask the user: a word, or rules by tool or pattern. */
export const approve = () => z.union([z.enum(APPROVE_WORDS), z.record(z.string(), z.enum(APPROVE_RULES))]);
