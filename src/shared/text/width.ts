/**
 * Measures text in terminal cells. Pi ends with an error if a line is wider than the terminal by Pi's own measure
 * (pi-tui 1.5.2, `visibleWidth`), so this file owns two measures. `visibleWidth` is Pi's, for texts that stand in columns.
 * `mostCells` is never less than Pi's and cuts every line: it adds up characters, so that parts of a line take no more
 * cells together than one by one, whatever Pi joins to one cluster, and whatever margin stands before the line. Pure.
 */
import { eastAsianWidth } from "get-east-asian-width";
import { plainLines, withBases, withoutEscapes } from "./unprintable.ts";

/** Made when a row first has more than ASCII: the set of all emoji alone takes 4 ms, too much for a start. */
interface Unicode {
  segmenter: Intl.Segmenter;
  noCell: RegExp;
  mark: RegExp;
  /** Marks that a terminal gives a cell. */
  spacingMark: RegExp;
  emoji: RegExp;
  /** A half of a flag. */
  regional: RegExp;
  unassigned: RegExp;
}

let made: Unicode | undefined;
const unicode = (): Unicode => {
  made ??= {
    segmenter: new Intl.Segmenter(undefined, { granularity: "grapheme" }),
    noCell: /^(?:\p{Default_Ignorable_Code_Point}|\p{Control}|\p{Format}|\p{Mark}|\p{Surrogate})$/u,
    mark: /^\p{Mark}$/u,
    spacingMark:
      /^(?:(?![\u1734\u302e\u302f])\p{Spacing_Mark}|[\u065f\u0f7f\u102b\u102c\u1031\u1033-\u1035\u1038\u103a-\u103e])$/u,
    emoji: /^\p{RGI_Emoji}$/v,
    regional: /^\p{Regional_Indicator}$/u,
    unassigned: /^\p{Unassigned}$/u,
  };
  return made;
};

/** One cell a character: ASCII, Latin-1, and the marks and borders of our own screens, which would cost most otherwise. */
const NARROW = /^[ -~\u00a1-\u00ac\u00ae-\u00ff\u2013\u2026\u2190-\u2193\u2500-\u259f\u25cb\u25cf]*$/;

/** Cells of a character behind the base of its cluster. */
function followerWidth(char: string, afterMark: boolean): number {
  const code = char.codePointAt(0) ?? 0;
  const { spacingMark, noCell } = unicode();
  if (spacingMark.test(char)) return 1;
  if (noCell.test(char)) return 0;
  const isForm = code >= 0xff00 && code <= 0xffef;
  return afterMark || isForm ? eastAsianWidth(code) : 0;
}

function clusterWidth(cluster: string): number {
  const { emoji, spacingMark, noCell, mark, regional } = unicode();
  const chars = [...cluster];
  if (chars.every((char) => spacingMark.test(char))) return chars.length;
  if (emoji.test(cluster)) return 2;
  const at = chars.findIndex((char) => !noCell.test(char));
  const base = chars[at];
  if (base === undefined) return 0;
  if (regional.test(base)) return 2;
  let width = eastAsianWidth(base.codePointAt(0) ?? 0);
  let afterMark = false;
  for (const char of chars.slice(at + 1)) {
    width += followerWidth(char, afterMark);
    if (spacingMark.test(char)) afterMark = false;
    else if (mark.test(char)) afterMark = true;
    else if (!noCell.test(char)) afterMark = false;
  }
  return width;
}

/**
 * The text with its tabs and its Thai and Lao AM as Pi draws them. Pi measures a finished line after that, but fills it up
 * to the width before, which is too much for an AM behind a flag or a mark.
 */
export const asDrawn = (line: string): string =>
  line.replaceAll("\u0e33", "\u0e4d\u0e32").replaceAll("\u0eb3", "\u0ecd\u0eb2").replaceAll("\t", "   ");

/**
 * Foreign text as a terminal and Pi's own components may show it: newlines stay, tabs become spaces, other controls and
 * escapes are removed.
 */
export const printable = (text: string): string => withBases(asDrawn(plainLines(text)));

/** Cells of one line, as Pi counts them. Escape sequences take none. */
export function visibleWidth(line: string): number {
  if (NARROW.test(line)) return line.length;
  const plain = withoutEscapes(line);
  if (NARROW.test(plain)) return plain.length;
  let width = 0;
  for (const { segment } of unicode().segmenter.segment(asDrawn(plain))) width += clusterWidth(segment);
  return width;
}

/** The text with spaces behind it up to so many cells. */
export const padded = (text: string, cells: number): string =>
  text + " ".repeat(Math.max(0, cells - visibleWidth(text)));

/** The most cells that Pi gives the character, whatever stands around it. */
function mostOf(char: string): number {
  if (char <= "~") return char === "\t" ? 3 : char < " " ? 0 : 1;
  const { spacingMark, noCell, regional, unassigned } = unicode();
  // The selector makes an emoji of a letter or a sign that takes one cell.
  if (char === "\ufe0f" || spacingMark.test(char)) return 1;
  if (regional.test(char)) return 2;
  if (noCell.test(char)) return 0;
  // A later Unicode may make an emoji of it, and Pi may know that Unicode.
  return unassigned.test(char) ? 2 : eastAsianWidth(char.codePointAt(0) ?? 0);
}

/** The most cells that Pi gives the text, wherever in a line it stands. Escape sequences take none. */
export function mostCells(text: string): number {
  if (NARROW.test(text)) return text.length;
  let cells = 0;
  for (const char of withoutEscapes(text)) cells += mostOf(char);
  return cells;
}

/** The position where a line of printable text must end to take at most `width` cells. */
function endWithin(line: string, from: number, width: number): number {
  // One character more is checked, since a mark behind the last character would belong to it.
  if (NARROW.test(line.slice(from, from + width + 1)))
    return Math.min(line.length, from + Math.max(0, width));
  let used = 0;
  let end = from;
  // A cluster is never divided. It can have any length, so only a part of the line is segmented, which is enough for any usual width.
  for (const { segment } of unicode().segmenter.segment(line.slice(from, from + width * 16 + 64))) {
    used += mostCells(segment);
    if (used > width) break;
    end += segment.length;
  }
  return end;
}

/** The start of a printable line with an ellipsis, in at most `width` cells. For a line that more text follows. */
export const cutOff = (line: string, width: number): string =>
  width < 1 ? "" : `${line.slice(0, endWithin(line, 0, width - 1))}…`;

/** One printable line of at most `width` cells; it ends with an ellipsis if any text is left out. */
export const cutTo = (line: string, width: number): string =>
  endWithin(line, 0, width) >= line.length ? line : cutOff(line, width);

/**
 * Breaks a printable text into at most `maxLines` lines of the screen, at spaces if that leaves most of a line. `rest`:
 * position of the first character that is not shown.
 */
export function wrap(text: string, width: number, maxLines: number): { lines: string[]; rest: number } {
  const lines: string[] = [];
  let at = 0;
  while (at < text.length && lines.length < maxLines) {
    const newline = text.indexOf("\n", at);
    const lineEnd = newline === -1 ? text.length : newline;
    const end = endWithin(text.slice(at, Math.min(lineEnd, at + width * 16 + 64)), 0, width) + at;
    if (end >= lineEnd) {
      lines.push(text.slice(at, lineEnd));
      at = lineEnd + 1;
      continue;
    }
    const space = text.lastIndexOf(" ", end);
    const breaks = space > at + (end - at) / 2;
    // A cluster wider than the screen cannot be shown and is skipped.
    if (end === at) {
      at +=
        unicode()
          .segmenter.segment(text.slice(at, at + 64))
          [Symbol.iterator]()
          .next().value?.segment.length ?? 1;
      continue;
    }
    lines.push(text.slice(at, breaks ? space : end));
    at = breaks ? space + 1 : end;
  }
  return { lines, rest: Math.min(at, text.length) };
}
