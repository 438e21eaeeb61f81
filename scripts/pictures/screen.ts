/**
 * Reads what `tmux capture-pane -e -p` prints: the screen of a terminal as text with SGR sequences (ECMA-48, section
 * 8.3.117, and the colours of xterm). Pure.
 */
import { visibleWidth } from "../../src/shared/text/width.ts";

export interface Style {
  /** `#rrggbb`; undefined: the terminal's own colour. */
  foreground: string | undefined;
  background: string | undefined;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
}

/** A text of one style on one line. */
export interface Run {
  text: string;
  /** The column of its first cell, from 0. */
  column: number;
  /** Its cells: a wide character has two. */
  cells: number;
  style: Style;
}

export const PLAIN: Style = {
  foreground: undefined,
  background: undefined,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

/** The first sixteen colours, readable on a dark ground. */
const NAMED = [
  ...["#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#c8ccd4"],
  ...["#7f848e", "#ff7b86", "#b5e890", "#ffd787", "#84c7ff", "#e39cf4", "#7fdbe8", "#ffffff"],
];
const CUBE_STEPS = [0, 95, 135, 175, 215, 255];
const CUBE_FROM = 16;
const GREYS_FROM = 232;

const hex = (...parts: readonly number[]): string =>
  `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

/** The colour of a number from 0 to 255: 16 named ones, a cube of 6 x 6 x 6, and 24 greys. */
export function indexedColour(index: number): string {
  if (index >= GREYS_FROM) {
    const grey = 8 + 10 * (index - GREYS_FROM);
    return hex(grey, grey, grey);
  }
  if (index < CUBE_FROM) return NAMED[index] ?? "#ffffff";
  const at = index - CUBE_FROM;
  const step = (n: number): number => CUBE_STEPS[n % CUBE_STEPS.length] ?? 0;
  return hex(step(Math.floor(at / 36)), step(Math.floor(at / 6)), step(at));
}

/** The colour after 38 or 48, and how many parameters it takes. */
function extendedColour(rest: readonly number[]): { colour: string | undefined; taken: number } {
  const [kind, first = 0, second = 0, third = 0] = rest;
  if (kind === 5) return { colour: indexedColour(first), taken: 2 };
  if (kind === 2) return { colour: hex(first, second, third), taken: 4 };
  return { colour: undefined, taken: 1 };
}

const SWITCHES: Readonly<Record<number, Partial<Style>>> = {
  0: PLAIN,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { foreground: undefined },
  49: { background: undefined },
};

/** The style after one sequence, given its parameters. Unknown ones change nothing. */
export function styleAfter(style: Style, parameters: readonly number[]): Style {
  let now = style;
  for (let i = 0; i < parameters.length; i++) {
    const code = parameters[i] ?? 0;
    const isForeground = code === 38;
    if (isForeground || code === 48) {
      const { colour, taken } = extendedColour(parameters.slice(i + 1));
      now = { ...now, [isForeground ? "foreground" : "background"]: colour };
      i += taken;
    } else if (code in SWITCHES) now = { ...now, ...SWITCHES[code] };
    else if (code >= 30 && code <= 37) now = { ...now, foreground: indexedColour(code - 30) };
    else if (code >= 40 && code <= 47) now = { ...now, background: indexedColour(code - 40) };
    else if (code >= 90 && code <= 97) now = { ...now, foreground: indexedColour(code - 82) };
    else if (code >= 100 && code <= 107) now = { ...now, background: indexedColour(code - 92) };
  }
  return now;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals' sequences begin with this character.
const SEQUENCES = /\u001b(?:\[([\d;:]*)([A-Za-z])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Z0-9])/g;

/** The runs of each line. A style lasts until another sequence, also over the end of a line. */
export function readScreen(text: string): Run[][] {
  let style = PLAIN;
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => {
      const runs: Run[] = [];
      let column = 0;
      const add = (part: string): void => {
        if (part === "") return;
        const cells = visibleWidth(part);
        runs.push({ text: part, column, cells, style });
        column += cells;
      };
      let from = 0;
      for (const match of line.matchAll(SEQUENCES)) {
        add(line.slice(from, match.index));
        from = match.index + match[0].length;
        if (match[2] === "m") style = styleAfter(style, (match[1] ?? "").split(/[;:]/).map(Number));
      }
      add(line.slice(from));
      return runs;
    });
}
