/** The statistics of calls as `/mcp stats` shows them. Pure. */
import { formatBytes, formatMs } from "../../src/protocol/size.ts";
import type { StatsSummary, ToolStats } from "./stats.ts";

const TOOLS_SHOWN = 30;
const NAME_CHARS = 48;

const HEAD = ["tool", "calls", "errors", "received", "shown", "mean"];

const cut = (name: string): string => (name.length > NAME_CHARS ? `${name.slice(0, NAME_CHARS - 1)}…` : name);

const row = (stats: ToolStats): string[] => [
  cut(`${stats.server} · ${stats.tool}`),
  String(stats.calls),
  String(stats.errors),
  formatBytes(stats.receivedBytes),
  formatBytes(stats.shownBytes),
  formatMs(stats.meanMs),
];

/** Names to the left, numbers to the right of their columns. */
function align(rows: readonly string[][]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)));
  return rows.map((cells) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join("  "),
  );
}

export function statsTable({ tools, tokensSaved }: StatsSummary): string {
  if (tools.length === 0) return "No calls are recorded yet.";
  const lines = align([HEAD, ...tools.slice(0, TOOLS_SHOWN).map(row)]);
  if (tools.length > TOOLS_SHOWN) lines.push(`and ${tools.length - TOOLS_SHOWN} more tools`);
  return [...lines, `About ${tokensSaved.toLocaleString("en")} tokens saved.`].join("\n");
}
