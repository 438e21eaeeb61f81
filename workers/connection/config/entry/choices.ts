/** The values that a key may choose from, as lists for the schemas and as types. Pure. */
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
