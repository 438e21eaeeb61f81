/** What all views share: the frame, the title, the hints about keys, and a list with its window. Pure. */
import { cutOff, wrap } from "../../../shared/text/width.ts";
import { type State, windowFrom } from "../model/model.ts";
import { type Colour, clean, line, type Part, type Parts, part, type Theme, withTilde } from "./line.ts";

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
  /** Lines above the list. */
  head: readonly Parts[];
  /** Makes the lines of the list; called with the number of lines that are free. */
  list: (rows: number) => readonly Parts[];
  /** Lines below the list, which tell more of the chosen row. */
  foot?: readonly Parts[];
  /** Keys and what they do. */
  hints: readonly (readonly [key: string, does: string])[];
}

/** Borders, title, the line of hints, and the empty lines below the title and above the hints. */
const FRAME_LINES = 6;
const FEWEST_ROWS = 3;

/** Lines for the list. */
export const rowsIn = ({ head, foot = [] }: Pick<Picture, "head" | "foot">, height: number): number =>
  Math.max(FEWEST_ROWS, height - FRAME_LINES - head.length - (foot.length === 0 ? 0 : foot.length + 1));

/** A foreign text on at most `most` lines, with an ellipsis if there is more. */
export function paragraph(text: string, width: number, most: number, colour?: Colour): Parts[] {
  const cells = Math.max(1, width - 2);
  const { lines, rest } = wrap(text, cells, most);
  return lines.map((one, i) => {
    const isCut = i === lines.length - 1 && rest < text.length;
    return [" ", part(isCut ? cutOff(one, cells) : one, colour)];
  });
}

/** The rows of a list that are seen, with a line that counts them if there are more. `draw` is called for these alone. */
export function listLines(
  { count, at, rows, empty }: { count: number; at: number; rows: number; empty: string },
  draw: (index: number, isChosen: boolean) => Parts,
): Parts[] {
  if (count === 0) return [[" ", part(empty, "muted")]];
  const hasMore = count > rows;
  const size = hasMore ? Math.max(1, rows - 1) : count;
  const from = windowFrom(at, count, size);
  const lines = Array.from({ length: size }, (_, i) => draw(from + i, from + i === at));
  const counted = `  (${(at + 1).toLocaleString("en")}/${count.toLocaleString("en")})`;
  return hasMore ? [...lines, [part(counted, "muted")]] : lines;
}

/** The mark before a row. */
export const pointer = (isChosen: boolean): Part => (isChosen ? part(" → ", "accent") : part("   "));

const hintParts = (hints: Picture["hints"]): Part[] =>
  hints.flatMap(([key, does], i) => [part(`${i === 0 ? "" : "  "}${key}`, "dim"), part(` ${does}`, "muted")]);

function lastLine({ busy }: State, hints: Picture["hints"]): Parts {
  if (busy !== undefined) return [" ", part(`${clean(busy)}…`, "accent")];
  return [" ", ...hintParts(hints)];
}

/** Lines that a notice may take: it names a file, and says what to do. */
const NOTICE_LINES = 3;

export function framed(
  picture: Picture,
  state: State,
  home: string,
  { width, height, theme }: Area,
): string[] {
  const { title, subtitle, hints } = picture;
  const { notice } = state;
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
  const head = picture.head.slice(0, Math.max(0, height - FRAME_LINES - FEWEST_ROWS - footLines));
  const border: Parts = [part("─".repeat(Math.max(0, width)), "border")];
  const titled: Parts = [" ", part(title, "accent", true), part(subtitle ? `  ${subtitle}` : "", "muted")];
  const lines: Parts[] = [
    border,
    titled,
    [],
    ...head,
    ...picture.list(rowsIn({ head, foot }, height)),
    ...(foot.length === 0 ? [] : [[] as Parts, ...foot]),
    [],
    lastLine(state, hints),
    border,
  ];
  return lines.map((parts) => line(parts, width, theme));
}
