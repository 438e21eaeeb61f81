/**
 * What dialogs share: the screen that they have, texts that are divided into pages because Pi does not cut the text of a dialog
 * and what does not fit is out of sight, links that a terminal opens, and the end of a wait.
 */

import type { PiContext } from "../pi/api.ts";
import { ThreadsError } from "../shared/protocol/errors.ts";
import { cutTo, mostCells, wrap } from "../shared/text/width.ts";

export interface Screen {
  columns: number;
  rows: number;
}

/** Size of the terminal; undefined if Pi does not draw on it. */
export const screenOf = ({ mode }: Pick<PiContext, "mode">): Screen | undefined =>
  mode === "tui" ? { columns: process.stdout.columns ?? 80, rows: process.stdout.rows ?? 24 } : undefined;

/** Rows that Pi draws around a question of three choices: frame, hints, choices, footer, and the heading of a page. */
const AROUND_ROWS = 18;
/** The same without the choices: frame, hints, footer and a line of another extension. The heading and the way back: two more. */
const AROUND_CHOICES = 11;
const PAGED_ROWS = 2;
const FEWEST_ROWS = 3;
/** Pi leaves a cell free on both sides. */
const AROUND_COLUMNS = 2;
/** Over RPC another program draws the dialog, on a screen of unknown size: a page has the size for a small terminal. */
const UNKNOWN: Screen = { columns: 80, rows: AROUND_ROWS + 12 };

const linesOn = ({ rows }: Screen): number => Math.max(rows - AROUND_ROWS, FEWEST_ROWS);
const widthOf = ({ columns }: Screen): number => Math.max(columns - AROUND_COLUMNS, 10);

/** The lines of a printable text as rows of the screen, each with the mark before it. */
export const rows = (text: string, mark: string, screen: Screen = UNKNOWN): string[] =>
  wrap(`${text}\n`, widthOf(screen) - mark.length, Number.POSITIVE_INFINITY).lines.map((row) => mark + row);

/** The start of each line, and how many lines are left out; the text itself if it fits. */
export function shortOf(text: string, screen: Screen = UNKNOWN): string {
  const lines = text.split("\n");
  const shown = lines.length <= linesOn(screen) ? lines : lines.slice(0, linesOn(screen) - 1);
  const left = lines.length - shown.length;
  const short = shown.map((line) => cutTo(line, widthOf(screen)));
  return [...short, ...(left > 0 ? [`and ${left.toLocaleString("en")} more lines`] : [])].join("\n");
}

/** The joined pages are the text again. There is at least one page. `choices`: how many stand below, for pages of all the room. */
export function pagesOf(text: string, screen: Screen = UNKNOWN, choices?: number): string[] {
  const width = widthOf(screen);
  const room = screen.rows - AROUND_CHOICES - (choices ?? 0);
  if (choices !== undefined && wrap(text, width, Math.max(room, FEWEST_ROWS)).rest === text.length)
    return [text];
  const lines = choices === undefined ? linesOn(screen) : Math.max(room - PAGED_ROWS, FEWEST_ROWS);
  const pages: string[] = [];
  let rest = text;
  do {
    const { rest: end } = wrap(rest, width, lines);
    pages.push(rest.slice(0, end));
    rest = rest.slice(end);
  } while (rest !== "");
  return pages;
}

/**
 * A link of a terminal (OSC 8): a click on any of its characters opens the whole address, also where Pi has broken the
 * text into several rows. A terminal that knows no links shows the text alone. `url`: of `openableUrl`.
 */
export const terminalLink = (url: string, text: string): string =>
  `\u001b]8;;${url}\u001b\\${text}\u001b]8;;\u001b\\`;

/** Rows of a terminal that the text takes. Pi keeps a cell free on both sides. */
export const rowsOf = (text: string, columns: number): number =>
  Math.ceil(mostCells(text) / Math.max(columns - 2, 1));

/** Settles as the promise does, or resolves with undefined once the signal aborts, whichever comes first. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T | undefined> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const stop = (): void => resolve(undefined);
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
    if (signal.aborted) stop();
  });
}

const RUNTIME_ENDED = new Set(["runtime_restarted", "runtime_stopped"]);

/** Whether a request failed because the worker ended, which is reported once, for the whole session. */
export const isRuntimeEnd = (error: unknown): boolean =>
  error instanceof ThreadsError && RUNTIME_ENDED.has(error.code);
