/** Draws the views of a text that a person scrolls through. The lines of a text are made once for each width. Pure. */
import { plainLines } from "../../../shared/text/unprintable.ts";
import { printable, wrap } from "../../../shared/text/width.ts";
import { EXPOSURE_WORDS, exposureNow, reportKey, type View, type World } from "../model/model.ts";
import type { Area, Picture } from "./frame.ts";
import { type Colour, clean, type Parts, part } from "./line.ts";
import { EXPOSURE_MARKS, tokensOfTool, whyText } from "./tools.ts";

/** Of one text: a schema may have megabytes. */
const TEXT_CHARS = 60_000;
const TEXT_LINES = 3_000;

interface Wrapped {
  text: string;
  cells: number;
  lines: string[];
}

let last: Wrapped | undefined;

/** The lines of the text that was wrapped last are kept: each key of the view needs them. */
function wrapped(text: string, cells: number): string[] {
  if (last?.text === text && last.cells === cells) return last.lines;
  const { lines } = wrap(printable(text.slice(0, TEXT_CHARS)), cells, TEXT_LINES);
  const isCut = text.length > TEXT_CHARS || lines.length === TEXT_LINES;
  last = { text, cells, lines: isCut ? [...lines, "…"] : lines };
  return last.lines;
}

/** A text with its first line that is seen. */
export interface Scrolled {
  lines: readonly string[];
  /** Undefined: the end is seen. */
  top: number | undefined;
}

/** A line of the log: its time, its level, and the thread, which says nothing about a server. */
const ENTRY = /^(\d{4}-\d\d-\d\dT[\d:.]{8,12}Z) (\w+) +\[[^\]]*\] /;

export const logLine = (line: string): string =>
  line.replace(ENTRY, (_, time: string, level: string) => {
    const at = new Date(time).toTimeString().slice(0, 8);
    return `${at} ${level === "info" ? "" : `${level}: `}`;
  });

const lineColour = (line: string): Colour => {
  if (/^[\d:]{8} error: /.test(line)) return "error";
  return /^[\d:]{8} warn: /.test(line) ? "warning" : "text";
};

/** The seen lines, and a line that says where they are. */
export function textLines({ lines, top }: Scrolled, rows: number, colour: (line: string) => Colour): Parts[] {
  const page = Math.max(1, rows - 1);
  const end = Math.max(0, lines.length - page);
  const from = Math.min(top ?? end, end);
  const seen = lines.slice(from, from + page).map((line): Parts => [" ", part(line, colour(line))]);
  if (lines.length <= page) return seen;
  const place = `  (${from + 1}–${from + seen.length}/${lines.length.toLocaleString("en")})`;
  return [...seen, [part(place, "muted")]];
}

type TextView = Extract<View, { name: "tool" | "log" | "stats" | "doctor" }>;

export const isText = (view: View): view is TextView =>
  view.name === "tool" || view.name === "log" || view.name === "stats" || view.name === "doctor";

const BACK = [
  ["↑↓", "scroll"],
  ["esc", "back"],
] as const;

function toolText({ server, tool }: Extract<View, { name: "tool" }>, world: World): string {
  const row = world.tools.get(server)?.rows[world.tools.get(server)?.at.get(tool) ?? -1];
  const { schema } = world;
  const declared = schema?.server === server && schema.tool === tool ? schema.text : "Reading its schema…";
  if (!row) return declared;
  const exposure = exposureNow(world, server, row);
  const cost = row.name === undefined ? "" : ` · ~${tokensOfTool(world, row)} tokens`;
  return [
    `${EXPOSURE_MARKS[exposure].sign} ${EXPOSURE_WORDS[exposure]}${cost}`,
    ...(row.name === undefined ? [] : [`In Pi: ${clean(row.name)}`]),
    whyText(row, world.home),
    "",
    ...(row.description.trim() === "" ? [] : [plainLines(row.description).trim(), ""]),
    declared,
  ].join("\n");
}

/** The whole text of the view as lines of the screen. */
export function linesOf(view: TextView, world: World, width: number): readonly string[] {
  const cells = Math.max(1, width - 2);
  if (view.name === "stats" || view.name === "doctor") {
    const { report } = world;
    return report?.of === reportKey(view) ? wrapped(report.text(cells), cells) : ["Looking…"];
  }
  if (view.name === "tool") return wrapped(toolText(view, world), cells);
  if (world.log?.server !== view.server) return ["Reading…"];
  return world.log.lines.length === 0
    ? ["The log has no line about it yet."]
    : wrapped(world.log.lines.map(logLine).join("\n"), cells);
}

function titleOf(view: TextView): string {
  switch (view.name) {
    case "stats":
      return "Statistics of calls";
    case "tool":
      return clean(view.tool);
    default:
      return clean(`${view.server} ${view.name}`);
  }
}

export function textPicture(view: TextView, world: World, { width }: Area): Picture {
  const lines = linesOf(view, world, width);
  const isLog = view.name === "log";
  const title = titleOf(view);
  return {
    title,
    ...(isLog ? { subtitle: view.top === undefined ? "following" : "end follows it" } : {}),
    ...(view.name === "tool" ? { subtitle: clean(view.server) } : {}),
    head: [],
    list: (rows) => textLines({ lines, top: view.top }, rows, isLog ? lineColour : () => "text"),
    hints: isLog
      ? [
          ["↑↓", "scroll"],
          ["end", "follow"],
          ["esc", "back"],
        ]
      : BACK,
  };
}
