/**
 * The line below the editor: `MCP 3/4 · 120 tools`, or what a start waits for: `MCP 3/4 · db: npm fetches x, 12 s`. Pi is told
 * only a line that differs.
 */
import type { PiContext } from "../pi/api.ts";
import { serverName } from "../report/server-name.ts";
import type { ServerStatus } from "../shared/protocol/status.ts";

const KEY = "pi-mcp-threads";

/** `tried`: a server that is not configured. */
export type Tried = Pick<ServerStatus, "waits"> & { server: string };

/** The first server that waits, and how many others do; undefined: none does. */
function waitText(servers: readonly ServerStatus[], tried: Tried | undefined): string | undefined {
  const waiting = [
    ...(tried?.waits ? [{ name: tried.server, waits: tried.waits }] : []),
    ...servers.filter(({ waits }) => waits !== undefined),
  ];
  const [first] = waiting;
  if (!first) return undefined;
  const more = waiting.length > 1 ? ` and ${waiting.length - 1} more` : "";
  return `${serverName(first.name)}: ${first.waits}${more}`;
}

export function statusText(servers: readonly ServerStatus[], tried?: Tried): string | undefined {
  const waits = waitText(servers, tried);
  const enabled = servers.filter((server) => server.state !== "disabled");
  if (enabled.length === 0) return waits;
  const connected = enabled.filter((server) => server.state === "connected").length;
  const tools = enabled.reduce((sum, server) => sum + server.toolCount, 0);
  const known = `${tools} tool${tools === 1 ? "" : "s"}`;
  // At 80 columns there is room for one of the two.
  return `MCP ${connected}/${enabled.length} · ${waits ?? known}`;
}

export function createStatusLine(ctx: PiContext): {
  show(servers: readonly ServerStatus[], tried?: Tried): void;
} {
  let shown: string | undefined;
  let trial: Tried | undefined;
  return {
    show: (servers, tried = trial) => {
      trial = tried;
      const text = statusText(servers, trial);
      if (text === shown || !ctx.hasUI) return;
      shown = text;
      ctx.ui.setStatus(KEY, text);
    },
  };
}
