/**
 * What the person is told of the plan without asking: the line below the editor, and the notices about the configuration.
 * Bounded, because each notice costs Pi a drawing of its screen, and a file of a cloned project can hold thousands of mistakes.
 */

import type { PiContext } from "../pi/api.ts";
import { notify } from "../pi/extension.ts";
import { serverName } from "../report/server-name.ts";
import type { ServerStatus } from "../shared/protocol/session.ts";

const KEY = "pi-mcp-threads";

/** `tried`: a server that is not configured. */
type Tried = Pick<ServerStatus, "waits"> & { server: string };

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

/** A lazy server that does not run is ready: a call starts it. */
const isReady = ({ state, lifecycle }: ServerStatus): boolean =>
  state === "connected" || (lifecycle === "lazy" && (state === "idle" || state === "closing"));
const isWrong = ({ state }: ServerStatus): boolean => state === "failed" || state === "needs-auth";
const wrongText = ({ state }: ServerStatus): string => (state === "failed" ? "failed" : "needs you");
const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

export function statusText(servers: readonly ServerStatus[], tried?: Tried): string | undefined {
  const waits = waitText(servers, tried);
  const enabled = servers.filter(({ state }) => state !== "disabled");
  if (enabled.length === 0) return waits;
  const wrong = enabled.filter(isWrong);
  const all = enabled.length;
  const ready = enabled.filter(isReady).length;
  const count = `${ready === all ? "" : `${ready} of `}${waits ? all : plural(all, "server")}`;
  const tools = plural(
    enabled.reduce((sum, server) => sum + server.toolCount, 0),
    "tool",
  );
  const [first] = wrong;
  const trouble =
    first &&
    (wrong.length > 1
      ? `${wrong.length} need attention: /mcp`
      : `${serverName(first.name)} ${wrongText(first)}: /mcp`);
  // At 80 columns there is room for one of the three.
  return `MCP: ${count} ready · ${waits ?? trouble ?? tools}`;
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

const CONFIG_LINES = 10;
const CONFIG_CHARS = 500;

/** Whether the notices show all of these lines, and each whole. */
export const areToldWhole = (lines: readonly string[]): boolean =>
  lines.length <= CONFIG_LINES && lines.every((line) => line.length <= CONFIG_CHARS);

interface ConfigNotices {
  /** `lines`: all that hold now. Shows those that did not hold at the last call. */
  show(lines: readonly string[]): void;
}

const cut = (line: string): string => (line.length > CONFIG_CHARS ? `${line.slice(0, CONFIG_CHARS)}…` : line);

export function createConfigNotices(ctx: PiContext): ConfigNotices {
  let reported = new Set<string>();
  return {
    show(lines) {
      const added = lines.filter((line) => !reported.has(line));
      reported = new Set(lines);
      if (added.length === 0) return;
      const more = added.length - CONFIG_LINES;
      const shown = added.slice(0, CONFIG_LINES).map(cut);
      if (more > 0) shown.push(`and ${more.toLocaleString("en")} more: /mcp shows what is wrong.`);
      // Without a UI each notice is one line on stderr.
      for (const text of ctx.hasUI ? [shown.join("\n")] : shown) notify(ctx, text, "warning");
    },
  };
}
