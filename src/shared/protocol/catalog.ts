/** The catalog's small parts that both threads name: settings, annotations, removals. The snapshot holds the rest. */

/** Hints of a server about a tool; the server is untrusted (MCP 2025-11-25, server/tools, annotations). */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** Settings that main must know before a worker runs. */
export interface CatalogSettings {
  /** How ToolSearch ranks: as src/shared/search/README.md describes, or by the 10/5/4/3 weights. Decides the index. */
  search: "ranked" | "weighted";
  /** What the description of ToolSearch lists: servers with tools, servers, or nothing. */
  catalog: "tools" | "servers" | "off";
  /** Offer one tool `mcp` in place of ToolSearch. */
  proxyTool: boolean;
  /** Whether a call to a server that needs a sign-in begins the sign-in and waits for it. */
  autoAuth: boolean;
  /** Absolute paths of the files that were read or looked for. */
  files: readonly string[];
}

export const DEFAULT_CATALOG_SETTINGS: CatalogSettings = {
  search: "ranked",
  catalog: "tools",
  proxyTool: false,
  autoAuth: false,
  files: [],
};

/** Servers and tools that the catalog no longer holds, by the servers' own names. */
export interface RemovedTools {
  servers: string[];
  /** Single tools of servers that the catalog still holds. */
  tools: { server: string; tool: string }[];
}
