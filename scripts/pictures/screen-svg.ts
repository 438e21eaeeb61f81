/**
 * Draws a terminal's screen: a dark window with a border, which reads well on a light and on a dark page. Each run of
 * text is stretched to its cells (`textLength`), so the grid is exact in whatever monospace font the reader has. Cells have
 * whole sizes and colours are classes, since the package brings some of these files. Pure.
 */
import { visibleWidth } from "../../src/shared/text/width.ts";
import { type Run, readScreen, type Style } from "./screen.ts";
import { escaped, MONOSPACE, round, svgOf } from "./svg.ts";

const CELL = { width: 8, height: 18 };
/** Most monospace letters are 0.6 of it wide: a cell. */
const FONT_SIZE = 13.3;
/** Where the letters stand in their cell, from its top. */
const BASELINE = 13;
const PADDING = 14;
const BAR = 26;
const RADIUS = 8;

const GROUND = "#16181d";
const INK = "#d5d9e0";

/** A picture has those of them that it uses. */
const LOOKS = {
  g: "shape-rendering:crispEdges",
  b: "font-weight:700",
  i: "font-style:italic",
  d: "opacity:.65",
  u: "text-decoration:underline",
  s: "text-decoration:line-through",
};

const CSS = [
  `text{font-family:${MONOSPACE};font-size:${FONT_SIZE}px;fill:${INK}}`,
  `.window{fill:${GROUND};stroke:#4b515d}`,
  "@media (prefers-color-scheme:dark){.window{stroke:#6b7280}}",
].join("");

const colours = ({ foreground, background, inverse }: Style): [ink: string, ground: string | undefined] =>
  inverse ? [background ?? GROUND, foreground ?? INK] : [foreground ?? INK, background];

const x = (column: number): string => round(PADDING + column * CELL.width);
const y = (row: number): number => BAR + PADDING / 2 + row * CELL.height;

/** Neighbours with one ground, as one run: between two rectangles a reader may show a seam. */
function grounds(runs: readonly Run[]): Run[] {
  const all: Run[] = [];
  for (const run of runs) {
    const last = all.at(-1);
    if (last !== undefined && colours(last.style)[1] === colours(run.style)[1]) {
      all[all.length - 1] = { ...last, cells: last.cells + run.cells };
    } else all.push(run);
  }
  return all;
}

function backgroundOf({ column, cells, style }: Run, row: number): string {
  const ground = colours(style)[1];
  if (ground === undefined) return "";
  const size = `width="${round(cells * CELL.width)}" height="${CELL.height}"`;
  return `<rect class="g" x="${x(column)}" y="${round(y(row))}" ${size} fill="${ground}"/>`;
}

/** The words of a run that single spaces join, each with its column: SVG makes one space of several. */
function pieces({ text, column }: Run): { text: string; column: number; cells: number }[] {
  return [...text.matchAll(/\S+(?: \S+)*/g)].map((match) => ({
    text: match[0],
    column: column + visibleWidth(text.slice(0, match.index)),
    cells: visibleWidth(match[0]),
  }));
}

/** A line across the screen, which would be hundreds of bytes as a text. */
function lineOf({ column, cells, style }: Omit<Run, "text">, row: number): string {
  const size = `width="${round(cells * CELL.width)}" height="1"`;
  return `<rect class="g" x="${x(column)}" y="${round(y(row) + CELL.height / 2)}" ${size} fill="${colours(style)[0]}"/>`;
}

/** Lines and blocks must touch; letters keep their shape, and only the room between them changes. */
const DRAWN = /[\u2500-\u259f]/;

function textsOf(run: Run, row: number, inks: readonly string[]): string[] {
  const { bold, italic, dim, underline, strike } = run.style;
  const ink = inks.indexOf(colours(run.style)[0]);
  const classes = [
    ink !== -1 && `c${ink}`,
    ...[bold && "b", italic && "i", dim && "d", underline && "u", strike && "s"],
  ].filter(Boolean);
  const look = classes.length > 0 ? [`class="${classes.join(" ")}"`] : [];
  return pieces(run).map(({ text, column, cells }) => {
    if (/^─+$/.test(text)) return lineOf({ column, cells, style: run.style }, row);
    const attributes = [
      `x="${x(column)}"`,
      `y="${round(y(row) + BASELINE)}"`,
      `textLength="${round(cells * CELL.width)}"`,
      ...(DRAWN.test(text) ? ['lengthAdjust="spacingAndGlyphs"'] : []),
      ...look,
    ];
    return `<text ${attributes.join(" ")}>${escaped(text)}</text>`;
  });
}

/** Joins neighbours of one style, which tmux separates where a sequence repeats the same. */
function joined(runs: readonly Run[]): Run[] {
  const all: Run[] = [];
  for (const run of runs) {
    const last = all.at(-1);
    const isSame = last !== undefined && JSON.stringify(last.style) === JSON.stringify(run.style);
    if (isSame) all[all.length - 1] = { ...last, text: last.text + run.text, cells: last.cells + run.cells };
    else all.push(run);
  }
  return all;
}

export interface ScreenOptions {
  /** The picture in one sentence, for those who do not see it. */
  title: string;
  columns: number;
}

/** `captured`: the lines of the screen, with escape sequences. */
export function screenSvg(captured: string, { title, columns }: ScreenOptions): string {
  const rows = readScreen(captured).map(joined);
  const width = 2 * PADDING + columns * CELL.width;
  const height = BAR + PADDING + PADDING / 2 + rows.length * CELL.height;
  const dots = ["#e06c75", "#e5c07b", "#98c379"].map(
    (colour, i) => `<circle cx="${PADDING + 5 + i * 17}" cy="${BAR / 2 + 1}" r="5" fill="${colour}"/>`,
  );
  const window = `<rect class="window" x=".5" y=".5" width="${round(width - 1)}" height="${round(height - 1)}" rx="${RADIUS}"/>`;
  const inks = [...new Set(rows.flat().map(({ style }) => colours(style)[0]))].filter((ink) => ink !== INK);
  const body = rows.flatMap((runs, row) => [
    ...grounds(runs).map((run) => backgroundOf(run, row)),
    ...runs.flatMap((run) => textsOf(run, row, inks)),
  ]);
  const used = new Set(body.flatMap((line) => /class="([^"]*)"/.exec(line)?.[1]?.split(" ") ?? []));
  const looks = Object.entries(LOOKS).filter(([name]) => used.has(name));
  const css = [
    CSS,
    ...looks.map(([name, look]) => `.${name}{${look}}`),
    ...inks.map((ink, i) => `.c${i}{fill:${ink}}`),
  ].join("");
  return svgOf({
    title,
    width,
    height,
    css,
    body: [window, ...dots, ...body.filter((line) => line !== "")].join("\n"),
  });
}
