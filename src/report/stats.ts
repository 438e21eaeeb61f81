/** The table of `/mcp stats`, as wide as the screen allows. Pure. */

import type { StatsReport, StatsSummary, ToolStats } from "../shared/protocol/calls.ts";
import { formatBytes, formatMs } from "../shared/text/amounts.ts";
import { cutTo, padded, printable, visibleWidth } from "../shared/text/width.ts";

const NAME_CELLS = 48;
/** If fewer cells than this are left for the names, each name stands on a line of its own. */
const NAME_CELLS_LEAST = 32;
const GAP = "  ";

const HEAD = ["calls", "errors", "received", "shown", "mean"];

const numbersOf = (stats: ToolStats): string[] => [
  String(stats.calls),
  String(stats.errors),
  formatBytes(stats.receivedBytes),
  formatBytes(stats.shownBytes),
  formatMs(stats.meanMs),
];

/** Server and tool in one line; a server may have put anything into the tool's name. */
const nameOf = ({ server, tool }: ToolStats): string =>
  printable(`${server} · ${tool}`).replaceAll("\n", " ");

function lines(tools: readonly ToolStats[], columns: number): string[] {
  const numbers = [HEAD, ...tools.map(numbersOf)];
  const widths = HEAD.map((_, column) => Math.max(...numbers.map((cells) => cells[column]?.length ?? 0)));
  const rows = numbers.map((cells) => cells.map((cell, i) => cell.padStart(widths[i] ?? 0)).join(GAP));
  const left = columns - (rows[0]?.length ?? 0) - GAP.length;
  const beside = left >= NAME_CELLS_LEAST;
  const names = ["tool", ...tools.map(nameOf)].map((name) =>
    cutTo(name, beside ? Math.min(left, NAME_CELLS) : columns),
  );
  const nameCells = Math.max(...names.map(visibleWidth));
  return names.flatMap((name, i) =>
    beside ? [`${padded(name, nameCells)}${GAP}${rows[i]}`] : [name, `${GAP}${rows[i]}`],
  );
}

function table({ tools, moreTools, tokensSaved }: StatsSummary, columns: number): string {
  if (tools.length === 0) return "No calls are recorded yet.";
  const more = moreTools > 0 ? [`and ${moreTools.toLocaleString("en")} more tools`] : [];
  const saved = `About ${tokensSaved.toLocaleString("en")} tokens saved.`;
  return [...lines(tools, columns), ...more, saved].join("\n");
}

/** `columns`: terminal cells of a line. */
export const renderStats = (report: StatsReport, columns: number): string =>
  report.captured
    ? table(report.summary, columns)
    : 'Nothing is captured. Set "captureStats": true under "settings" in mcp.json.';
