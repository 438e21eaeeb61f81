/**
 * Which tools are declared from the first request on. The variable `MCP_DIRECT_TOOLS` overrides the configuration; it
 * holds `*`, `server` or `server/tool`, separated by commas, or `__none__`. Pure.
 */
export interface DirectRule {
  /** True if the catalog does not mark the direct tools: the variable names them. */
  byName: boolean;
  isDirect(tool: { tool: string; server: { name: string }; direct?: boolean }): boolean;
  /** Whether some tools of this server may be direct. `configured`: what the configuration says. */
  concerns(server: string, configured: boolean): boolean;
}

export function directRule(variable: string | undefined): DirectRule {
  const entries = (variable ?? "").split(",").map((entry) => entry.trim());
  const given = entries.filter((entry) => entry !== "");
  if (given.length === 0) {
    return {
      byName: false,
      isDirect: ({ direct }) => direct === true,
      concerns: (_server, configured) => configured,
    };
  }
  if (given.includes("__none__")) return { byName: false, isDirect: () => false, concerns: () => false };
  const named = new Set(given);
  return {
    byName: true,
    isDirect: ({ tool, server }) =>
      named.has("*") || named.has(server.name) || named.has(`${server.name}/${tool}`),
    concerns: (server) =>
      named.has("*") || given.some((entry) => entry === server || entry.startsWith(`${server}/`)),
  };
}
