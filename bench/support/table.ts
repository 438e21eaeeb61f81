/**
 * Owns: the rows of a scenario as text: medians with their range, differences to the baseline, targets.
 * Must not: measure or decide: a missed target is a word in the table, not a failure.
 * Called by: the runner; bench/figures/ contains these tables unchanged.
 */
import type { Row } from "./scenario.ts";
import { formatNumber, median, summarize } from "./stats.ts";

const HEAD = ["case", "metric", "median (min to max)", "over baseline", "times ours", "target"];

/** A Markdown table with aligned columns. */
export function formatRows(rows: readonly Row[]): string {
  const body = rows.map((row, index) => {
    const repeated = rows[index - 1]?.case === row.case;
    return [
      repeated ? "" : row.case,
      row.metric,
      valueCell(row),
      baselineCell(row, rows),
      oursCell(row, rows),
      targetCell(row, rows),
    ];
  });
  const widths = HEAD.map((title, column) =>
    Math.max(title.length, ...body.map((cells) => width(cells[column]))),
  );
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  const rule = line(widths.map((count) => "-".repeat(count)));
  return [line(HEAD), rule, ...body.map(line)].join("\n");
}

const width = (cell: string | undefined): number => cell?.length ?? 0;

function valueCell({ values, unit, note }: Row): string {
  const remark = note === undefined ? "" : `: ${note.replaceAll("|", "/")}`;
  if (values.length === 0) return `-${remark}`;
  const { median: middle, min, max } = summarize(values);
  if (min === max) return `${formatNumber(middle)} ${unit}${remark}`;
  return `${formatNumber(middle)} ${unit} (${formatNumber(min)} to ${formatNumber(max)})${remark}`;
}

function baselineOf(row: Row, rows: readonly Row[]): Row | undefined {
  return rows.find((other) => other.case === row.baseline && other.metric === row.metric);
}

function baselineCell(row: Row, rows: readonly Row[]): string {
  const baseline = baselineOf(row, rows);
  if (baseline === undefined || row.values.length === 0 || baseline.values.length === 0) return "";
  const [own, other] = [median(row.values), median(baseline.values)];
  const over = own - other;
  const factor = other > 0 ? `, x${formatNumber(own / other)}` : "";
  return `${over < 0 ? "" : "+"}${formatNumber(over)} ${row.unit}${factor}`;
}

/** A peer's value divided by this package's value. */
function oursCell(row: Row, rows: readonly Row[]): string {
  const ours = rows.find((other) => other.case === row.ours && other.metric === row.metric);
  if (ours === undefined || row.values.length === 0 || ours.values.length === 0) return "";
  const [theirs, own] = [median(row.values), median(ours.values)];
  return own > 0 && theirs >= 0 ? `x${formatNumber(theirs / own)}` : "";
}

/** Compares the target with the median, minus the median of the baseline if there is one. */
export function missesTarget(row: Row, rows: readonly Row[]): boolean {
  if (row.target === undefined) return false;
  const baseline = baselineOf(row, rows);
  const spent = median(row.values) - (baseline ? median(baseline.values) : 0);
  return row.atLeast ? !(spent >= row.target) : !(spent <= row.target);
}

function targetCell(row: Row, rows: readonly Row[]): string {
  if (row.target === undefined) return "";
  return `${row.target} ${row.unit}: ${missesTarget(row, rows) ? "MISSED" : "met"}`;
}

/** One line for each missed target; empty if all are met. */
export function formatMisses(rows: readonly Row[]): string {
  return rows
    .filter((row) => missesTarget(row, rows))
    .map((row) => {
      const over = baselineCell(row, rows);
      const reached = over === "" ? valueCell(row) : `${over} over ${row.baseline}`;
      return `- ${row.case}, ${row.metric}: ${reached}, wanted ${row.atLeast ? "at least " : ""}${row.target} ${row.unit}`;
    })
    .join("\n");
}
