/** The line below the editor: `MCP 3/4 · 120 tools`. Pi is told only a line that differs. */
import type { PiContext } from "../pi/context.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";

const KEY = "pi-mcp-threads";

export function statusText(servers: readonly ServerStatus[]): string | undefined {
  const enabled = servers.filter((server) => server.state !== "disabled");
  if (enabled.length === 0) return undefined;
  const connected = enabled.filter((server) => server.state === "connected").length;
  const tools = enabled.reduce((sum, server) => sum + server.toolCount, 0);
  return `MCP ${connected}/${enabled.length} · ${tools} tool${tools === 1 ? "" : "s"}`;
}

export function createStatusLine(ctx: PiContext): { show(servers: readonly ServerStatus[]): void } {
  let shown: string | undefined;
  return {
    show: (servers) => {
      const text = statusText(servers);
      if (text === shown || !ctx.hasUI) return;
      shown = text;
      ctx.ui.setStatus(KEY, text);
    },
  };
}
