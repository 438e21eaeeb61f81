/**
 * Divides a text into pages that fit on the screen. Pi does not cut the text of a dialog, but the part that does not fit
 * is out of sight. Pure.
 */
import type { PiContext } from "../pi/api.ts";
import { cutTo, wrap } from "../shared/text/width.ts";

export interface Screen {
  columns: number;
  rows: number;
}

/** Size of the terminal; undefined if Pi does not draw on it. */
export const screenOf = ({ mode }: Pick<PiContext, "mode">): Screen | undefined =>
  mode === "tui" ? { columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 } : undefined;

/** Rows that Pi draws around a question of three choices: frame, hints, choices, footer, and the heading of a page. */
const AROUND_ROWS = 18;
const FEWEST_ROWS = 3;
/** Pi leaves a cell free on both sides. */
const AROUND_COLUMNS = 2;
/** Over RPC another program draws the dialog, on a screen of unknown size: a page has the size for a small terminal. */
const UNKNOWN: Screen = { columns: 80, rows: AROUND_ROWS + 12 };

const linesOn = ({ rows }: Screen): number => Math.max(rows - AROUND_ROWS, FEWEST_ROWS);
const widthOf = ({ columns }: Screen): number => Math.max(columns - AROUND_COLUMNS, 10);

/** The start of each line, and how many lines are left out; the text itself if it fits. */
export function shortOf(text: string, screen: Screen = UNKNOWN): string {
  const lines = text.split("\n");
  const shown = lines.length <= linesOn(screen) ? lines : lines.slice(0, linesOn(screen) - 1);
  const left = lines.length - shown.length;
  const short = shown.map((line) => cutTo(line, widthOf(screen)));
  return [...short, ...(left > 0 ? [`and ${left.toLocaleString("en")} more lines`] : [])].join("\n");
}

/** The joined pages are the text again. There is at least one page. */
export function pagesOf(text: string, screen: Screen = UNKNOWN): string[] {
  const lines = linesOn(screen);
  const width = widthOf(screen);
  const pages: string[] = [];
  let rest = text;
  do {
    const { rest: end } = wrap(rest, width, lines);
    pages.push(rest.slice(0, end));
    rest = rest.slice(end);
  } while (rest !== "");
  return pages;
}
