/**
 * What our own screens in a terminal share: the frame, the title, the hints about keys, and a list with its window. Must not:
 * know what is shown. Pure.
 */

import { grouped } from "../../shared/text/amounts.ts";
import { oneLine, plainLines } from "../../shared/text/unprintable.ts";
import { asDrawn, cutOff, cutTo, mostCells, padded, visibleWidth, wrap } from "../../shared/text/width.ts";
import { type Row, windowFrom } from "./list.ts";

export type Colour = "accent" | "border" | "success" | "warning" | "error" | "muted" | "dim" | "text";

export interface Theme {
  fg(color: Colour, text: string): string;
  bold(text: string): string;
}

interface Part {
  text: string;
  colour?: Colour | undefined;
  bold?: boolean;
}

export type Parts = readonly (Part | string)[];

/** More characters of one text than any screen shows in a line. */
const CHARS = 1_000;

/** Foreign text in one line. */
export const clean = (text: string): string => asDrawn(oneLine(text, CHARS));

/** Foreign text in one line, with `~` for the home folder before a path. */
export const withTilde = (text: string, home: string): string =>
  clean(home === "" ? text : text.replaceAll(`${home}/`, "~/"));

export const part = (text: string, colour?: Colour, bold = false): Part => ({ text, colour, bold });

/** Exactly so many cells. */
export const cell = (text: string, cells: number): string => padded(cutTo(text, Math.max(0, cells)), cells);

/** The same with the text at the right end. */
export function cellRight(text: string, cells: number): string {
  const short = cutTo(text, Math.max(0, cells));
  return " ".repeat(Math.max(0, cells - visibleWidth(short))) + short;
}

/** Joins the parts to one line of at most `width` cells. */
function line(parts: Parts, width: number, theme: Theme): string {
  let left = width;
  let joined = "";
  for (const given of parts) {
    if (left <= 0) break;
    const { text, colour, bold } = typeof given === "string" ? { text: given } : given;
    // Callers clean foreign text; a control character that one forgot must not reach the terminal either.
    const safe = plainLines(text).replace(/[\n\t]/g, " ");
    const short = cutTo(safe, left);
    left -= mostCells(short);
    const weighted = bold ? theme.bold(short) : short;
    joined += colour ? theme.fg(colour, weighted) : weighted;
    if (short !== safe) break;
  }
  return joined;
}

export interface Area {
  width: number;
  /** Lines that the whole panel may take. */
  height: number;
  theme: Theme;
}

/** A view before the frame is drawn around it. */
export interface Picture {
  /** First words in bold, then details. */
  title: string;
  subtitle?: string;
  head: readonly Parts[];
  /** Makes the lines of the list; called with the number of lines that are free. */
  list: (rows: number) => readonly Parts[];
  /** Lines below the list, which tell more of the chosen row. */
  foot?: readonly Parts[];
  /** Keys and what they do, for example `enter open  esc back`. */
  hints: string;
  /** Keys of the chosen row, in a line of their own. Absent: no row of this view has any. */
  rowKeys?: string;
}

/** Borders, title, the line of hints, and the empty lines below the title and above the hints. */
const FRAME_LINES = 6;
const FEWEST_ROWS = 3;

const frameLines = ({ rowKeys }: Pick<Picture, "rowKeys">): number =>
  FRAME_LINES + (rowKeys === undefined ? 0 : 1);

export const rowsIn = (picture: Pick<Picture, "head" | "foot" | "rowKeys">, height: number): number => {
  const { head, foot = [] } = picture;
  const others = frameLines(picture) + head.length + (foot.length === 0 ? 0 : foot.length + 1);
  return Math.max(FEWEST_ROWS, height - others);
};

/** A foreign text on at most `most` lines, with an ellipsis if there is more. */
export function paragraph(text: string, width: number, most: number, colour?: Colour): Parts[] {
  const cells = Math.max(1, width - 2);
  const { lines, rest } = wrap(text, cells, most);
  return lines.map((one, i) => {
    const isCut = i === lines.length - 1 && rest < text.length;
    return [" ", part(isCut ? cutOff(one, cells) : one, colour)];
  });
}

/**
 * The rows of a list that are seen, with a line that counts them if there are more. `draw` is called for these alone.
 * `at`: the chosen one. `empty`: what stands in place of no rows.
 */
export const listLines =
  <R>(
    all: readonly R[],
    at: number,
    empty: string,
    draw: (row: R, isChosen: boolean, index: number) => Parts,
  ): Picture["list"] =>
  (rows) => {
    const count = all.length;
    if (count === 0) return [[" ", part(empty, "muted")]];
    const hasMore = count > rows;
    const size = hasMore ? Math.max(1, rows - 1) : count;
    const from = windowFrom(at, count, size);
    const lines = all.slice(from, from + size).map((row, i) => draw(row, from + i === at, from + i));
    const counted = `  (${grouped(at + 1)}/${grouped(count)})`;
    return hasMore ? [...lines, [part(counted, "muted")]] : lines;
  };

type Labelled = Row & { label: string };

/** A label, and what it means or holds at the same place in each of these rows. */
function menuDrawer<R extends Labelled>(rows: readonly R[], meaning: (row: R) => string | undefined) {
  const cells = Math.max(0, ...rows.map((row) => (meaning(row) === undefined ? 0 : row.label.length)));
  return (row: R, isChosen: boolean): (Part | string)[] => {
    const value = meaning(row);
    return [
      pointer(isChosen),
      part(value === undefined ? row.label : cell(row.label, cells), isChosen ? "accent" : "text"),
      part(value === undefined ? "" : `  ${clean(value)}`, "muted"),
    ];
  };
}

/** Rows of a label and what it means or holds. */
export const menuLines = <R extends Labelled>(
  rows: readonly R[],
  at: number,
  empty: string,
  meaning: (row: R) => string | undefined,
): Picture["list"] => listLines(rows, at, empty, menuDrawer(rows, meaning));

/** A column of a menu is at least so wide. */
const COLUMN_CELLS = 38;

/**
 * The rows that the first of two columns has, if all fit into the lines in two columns and not in one; undefined: one column.
 */
export function columnRows(count: number, lines: number, width: number): number | undefined {
  const half = Math.ceil(count / 2);
  return count > lines && half <= lines && width >= 2 * COLUMN_CELLS ? half : undefined;
}

/** The same in two columns where one has no room for all. */
export function menuColumns<R extends Labelled>(
  rows: readonly R[],
  at: number,
  empty: string,
  { meaning, width }: { meaning: (row: R) => string | undefined; width: number },
): Picture["list"] {
  return (lines) => {
    const half = columnRows(rows.length, lines, width);
    if (half === undefined) return menuLines(rows, at, empty, meaning)(lines);
    const [left, right] = [rows.slice(0, half), rows.slice(half)];
    const [drawLeft, drawRight] = [menuDrawer(left, meaning), menuDrawer(right, meaning)];
    return left.map((row, i): Parts => {
      const other = right[i];
      const first = fill(drawLeft(row, i === at), Math.floor(width / 2));
      return other === undefined ? first : [...first, ...drawRight(other, half + i === at)];
    });
  };
}

/** Exactly so many cells. */
function fill(parts: readonly (Part | string)[], cells: number): Parts {
  let left = cells;
  const filled = parts.map((given): Part => {
    const one = typeof given === "string" ? { text: given } : given;
    const text = cutTo(one.text, Math.max(0, left));
    left -= mostCells(text);
    return { ...one, text };
  });
  return [...filled, " ".repeat(Math.max(0, left))];
}

export const filterLine = (label: string, text: string): Parts => [
  " ",
  part(label, "muted"),
  part(clean(text), "text"),
  part("▏", "accent"),
];

export const pointer = (isChosen: boolean): Part => (isChosen ? part(" → ", "accent") : part("   "));

/** Each key with what it does; `^r` for `ctrl+r` where the words would not fit. */
function hintLine(hints: string, width: number): Parts {
  const short = hints.length < width ? hints : hints.replaceAll("ctrl+", "^");
  const parts = short.split("  ").flatMap((hint, i) => {
    const [key = ""] = hint.split(" ", 1);
    return [part(`${i === 0 ? "" : "  "}${key}`, "dim"), part(hint.slice(key.length), "muted")];
  });
  return [" ", ...parts];
}

export interface Notice {
  text: string;
  level: "info" | "error";
}

/** What a screen tells beside its view. `busy`: what is under way, for example `Reconnecting github`. */
export interface Told {
  notice: Notice | undefined;
  busy: string | undefined;
}

const lastLine = ({ busy }: Told, hints: string, width: number): Parts =>
  busy === undefined ? hintLine(hints, width) : [" ", part(`${clean(busy)}…`, "accent")];

/** Lines that a notice may take: it names a file, and says what to do. */
const NOTICE_LINES = 3;

export function framed(picture: Picture, told: Told, home: string, { width, height, theme }: Area): string[] {
  const { title, subtitle, hints, rowKeys } = picture;
  const { notice } = told;
  const foot = notice
    ? paragraph(
        withTilde(notice.text, home),
        width,
        NOTICE_LINES,
        notice.level === "error" ? "error" : "success",
      )
    : (picture.foot ?? []);
  // On a low screen the list keeps its rows, and what stands above it loses its last lines.
  const footLines = foot.length === 0 ? 0 : foot.length + 1;
  const head = picture.head.slice(0, Math.max(0, height - frameLines(picture) - FEWEST_ROWS - footLines));
  const border: Parts = [part("─".repeat(Math.max(0, width)), "border")];
  const titled: Parts = [" ", part(title, "accent", true), part(subtitle ? `  ${subtitle}` : "", "muted")];
  const lines: Parts[] = [
    border,
    titled,
    [],
    ...head,
    ...picture.list(rowsIn({ ...picture, head, foot }, height)),
    ...(foot.length === 0 ? [] : [[] as Parts, ...foot]),
    [],
    ...(rowKeys === undefined ? [] : [hintLine(rowKeys, width)]),
    lastLine(told, hints, width),
    border,
  ];
  return lines.map((parts) => line(parts, width, theme));
}
