/**
 * A line of the panel from coloured parts, never wider than the screen: Pi ends with an error if a line is. All text of
 * servers and files passes `clean`. Pure.
 */
import { oneLine, plainLines } from "../../../shared/text/unprintable.ts";
import { cutTo, mostCells, padded, visibleWidth } from "../../../shared/text/width.ts";

export type Colour = "accent" | "border" | "success" | "warning" | "error" | "muted" | "dim" | "text";

export interface Theme {
  fg(color: Colour, text: string): string;
  bold(text: string): string;
}

export interface Part {
  text: string;
  colour?: Colour | undefined;
  bold?: boolean;
}

export type Parts = readonly (Part | string)[];

/** More characters of one text than any screen shows in a line. */
const CHARS = 1_000;

/** Foreign text in one line. */
export const clean = (text: string): string => oneLine(text, CHARS);

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
export function line(parts: Parts, width: number, theme: Theme): string {
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
