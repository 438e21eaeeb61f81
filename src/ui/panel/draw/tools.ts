/** Draws the tools of a server, a tool, and a tried search. Only the rows that are seen are looked at. Pure. */

import type { ToolExposure } from "../../../shared/protocol/person.ts";
import { counted, formatMs, grouped } from "../../../shared/text/amounts.ts";
import { firstSentence, plainLines } from "../../../shared/text/unprintable.ts";
import { printable, wrap } from "../../../shared/text/width.ts";
import {
  type Area,
  type Colour,
  cell,
  cellRight,
  clean,
  filterLine,
  listLines,
  type Parts,
  type Picture,
  paragraph,
  part,
  pointer,
  withTilde,
} from "../../screen/frame.ts";
import { chosenAt, isLeft } from "../../screen/list.ts";
import { withResources } from "../model/menu.ts";
import { reportKey } from "../model/model.ts";
import { exposureNow, type TextView, type ToolRow, type View, type World } from "../model/state.ts";
import { allWords, EXPOSURE_WORDS, filteredTools, isTool, NEXT, type ToolsRow } from "../model/tools.ts";
import { tokensText } from "./servers.ts";

const WIDE = 80;
const EXPOSURE_CELLS = 8;
const TOKEN_CELLS = 6;

const EXPOSURE_MARKS: Readonly<Record<ToolExposure, { sign: string; colour: Colour }>> = {
  direct: { sign: "●", colour: "success" },
  search: { sign: "○", colour: "muted" },
  hidden: { sign: "–", colour: "dim" },
};

/** A deferred tool that a search has loaded. */
const LOADED = { sign: "●", colour: "accent" } as const;

const nameCells = (width: number): number =>
  width >= WIDE
    ? Math.min(40, Math.floor(width / 3))
    : Math.max(8, width - 5 - EXPOSURE_CELLS - TOKEN_CELLS - 3);

const tokensOfTool = ({ tokensOf }: World, { name }: Pick<ToolRow, "name">): string => {
  const tokens = name === undefined ? undefined : tokensOf(name);
  return tokens === undefined ? "–" : tokensText(tokens);
};

function toolLine(
  row: ToolRow,
  isChosen: boolean,
  { server, world, width }: { server: string; world: World; width: number },
): Parts {
  const exposure = exposureNow(world, server, row);
  const isLoaded = exposure === "search" && row.name !== undefined && world.loaded.has(row.name);
  const { sign, colour } = isLoaded ? LOADED : EXPOSURE_MARKS[exposure];
  return [
    pointer(isChosen),
    part(`${sign} `, colour),
    part(
      cell(clean(row.key), nameCells(width)),
      isChosen ? "accent" : exposure === "hidden" ? "dim" : "text",
    ),
    " ",
    part(cell(isLoaded ? "loaded" : EXPOSURE_WORDS[exposure], EXPOSURE_CELLS), colour),
    " ",
    part(cellRight(tokensOfTool(world, row), TOKEN_CELLS), "muted"),
    ...(width >= WIDE ? ["  ", part(firstSentence(row.description), "dim")] : []),
  ];
}

/** The rule that decides about the tool, and where it stands; or the server's word. */
function whyText({ place, serversWord }: ToolRow, home: string): string {
  if (serversWord === "pages") return "Only for the server's own pages (MCP Apps): no model may have it.";
  if (serversWord === "wish") return "No rule names it, and its server wishes it always declared.";
  if (!place) return "No rule names it, so ToolSearch finds it.";
  const at = place.line === undefined ? place.file : `${place.file}:${place.line}`;
  return withTilde(`By ${place.rule} in ${at}.`, home);
}

/** What Tab does: it writes. */
const nextText = (row: ToolRow, server: string, world: World): string =>
  `make it ${EXPOSURE_WORDS[NEXT[exposureNow(world, server, row)]]} (writes mcp.json)`;

function keysOf(row: ToolsRow | undefined, server: string, world: World): string {
  if (!row) return " ";
  if (isTool(row) && row.serversWord === "pages") return " ";
  return isTool(row)
    ? `tab ${nextText(row, server, world)}  ctrl+t try it`
    : "tab change all that are listed";
}

function aboutTool(row: ToolsRow | undefined, world: World, width: number): Parts[] {
  if (!row) return [];
  if (!isTool(row))
    return paragraph("Enter and tab ask what becomes of all that are listed.", width, 1, "muted");
  return [
    ...paragraph(firstSentence(row.description) || "It has no description.", width, 2, "text"),
    ...paragraph(whyText(row, world.home), width, 2, "muted"),
  ];
}

export function toolsPicture(
  { server, list }: Extract<View, { name: "tools" }>,
  world: World,
  { width }: Area,
): Picture {
  const all = world.tools.get(server);
  const { rows, find } = filteredTools(all, list.filter);
  const at = chosenAt(list, rows, find);
  const cost = world.costs.get(server);
  const count = Math.max(0, rows.length - 1);
  const declared = cost?.isWhole
    ? ` · ${cost.declaredTools} loaded, ~${tokensText(cost.declared)} of ~${tokensText(cost.all)} tokens`
    : "";
  const resources = world.servers.find(({ name }) => name === server)?.resourceCount ?? 0;
  const total = all?.rows.length ?? 0;
  const listed =
    list.filter === ""
      ? withResources(total - resources, resources)
      : `${grouped(count)} of ${grouped(total)}`;
  return {
    title: `${clean(server)} tools`,
    subtitle: all ? `${listed}${declared}` : "",
    head: [filterLine("Filter: ", list.filter)],
    list: listLines(rows, at, all ? "No tool fits the filter." : "Reading the tools…", (row, isChosen) => {
      if (isTool(row)) return toolLine(row, isChosen, { world, server, width });
      const words = allWords(list.filter === "", count, resources);
      return [pointer(isChosen), part("» ", "muted"), part(words, isChosen ? "accent" : "muted")];
    }),
    foot: aboutTool(rows[at], world, width),
    hints: `↑↓ move  enter open  type to filter  esc ${isLeft(list) ? "back" : "clear"}`,
    rowKeys: keysOf(rows[at], server, world),
  };
}

const SCORE_CELLS = 7;

/** For example `0.42 ms`, `12 ms`. */
const msText = (ms: number): string => (ms < 10 ? `${ms.toFixed(2)} ms` : formatMs(ms));

export function searchPicture(
  { list }: Extract<View, { name: "search" }>,
  world: World,
  { width }: Area,
): Picture {
  const { tried } = world;
  const { filter: query } = list;
  const hits = tried?.hits ?? [];
  const cells = width >= WIDE ? Math.min(48, Math.floor(width / 2.5)) : Math.max(8, width - 20);
  const nothing =
    query === "" ? "Type what a tool should do, as a model would ask ToolSearch." : "No tool matches.";
  return {
    title: "Try a search",
    subtitle:
      tried && query !== "" ? `${counted(tried.count, "tool")} ranked in ${msText(tried.tookMs)}` : "",
    head: [
      filterLine("Search: ", query),
      [part(`     ${cell("#", 4)}${cell("tool", cells)} ${cellRight("score", SCORE_CELLS)}`, "dim")],
    ],
    list: listLines(hits, chosenAt(list, hits), nothing, (hit, isChosen, index) => {
      const isLoaded = index < (tried?.likely ?? 0);
      return [
        pointer(isChosen),
        part(isLoaded ? "● " : "○ ", isLoaded ? "success" : "muted"),
        part(cell(String(index + 1), 4), "muted"),
        part(cell(clean(hit.key), cells), isChosen ? "accent" : isLoaded ? "text" : "muted"),
        " ",
        part(cellRight(hit.score.toFixed(2), SCORE_CELLS), "muted"),
        ...(width >= WIDE ? ["  ", part(firstSentence(hit.description), "dim")] : []),
      ];
    }),
    foot: hits.length === 0 ? [] : paragraph("● would be loaded  ○ would only be named", width, 1, "muted"),
    hints: `type to search  ↑↓ move  enter show  esc ${isLeft(list) ? "back" : "clear"}`,
    rowKeys: hits.length === 0 ? " " : "ctrl+t try it",
  };
}

/** Of one text: a schema may have megabytes. */
const TEXT_CHARS = 60_000;
const TEXT_LINES = 3_000;

let last: { text: string; cells: number; lines: string[] } | undefined;

/** The lines of the text that was wrapped last are kept: each key of the view needs them. */
function wrapped(text: string, cells: number): string[] {
  if (last?.text === text && last.cells === cells) return last.lines;
  const { lines } = wrap(printable(text.slice(0, TEXT_CHARS)), cells, TEXT_LINES);
  const isCut = text.length > TEXT_CHARS || lines.length === TEXT_LINES;
  last = { text, cells, lines: isCut ? [...lines, "…"] : lines };
  return last.lines;
}

/** A line of the log: its time, its level, and the thread, which says nothing about a server. */
const ENTRY = /^(\d{4}-\d\d-\d\dT[\d:.]{8,12}Z) (\w+) +\[[^\]]*\] /;

const logLine = (line: string): string =>
  line.replace(ENTRY, (_, time: string, level: string) => {
    const at = new Date(time).toTimeString().slice(0, 8);
    return `${at} ${level === "info" ? "" : `${level}: `}`;
  });

const lineColour = (line: string): Colour => {
  if (/^[\d:]{8} error: /.test(line)) return "error";
  return /^[\d:]{8} warn: /.test(line) ? "warning" : "text";
};

/** The seen lines, and a line that says where they are. `top`: undefined for the end. */
function textLines(
  lines: readonly string[],
  top: number | undefined,
  rows: number,
  colour: (line: string) => Colour,
): Parts[] {
  const page = Math.max(1, rows - 1);
  const end = Math.max(0, lines.length - page);
  const from = Math.min(top ?? end, end);
  const seen = lines.slice(from, from + page).map((line): Parts => [" ", part(line, colour(line))]);
  if (lines.length <= page) return seen;
  const place = `  (${from + 1}–${from + seen.length}/${grouped(lines.length)})`;
  return [...seen, [part(place, "muted")]];
}

function toolText({ server, tool }: Extract<View, { name: "tool" }>, world: World): string {
  const tools = world.tools.get(server);
  const row = tools?.rows[tools.at.get(tool) ?? -1];
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
  if (view.name === "result") return wrapped(view.text, cells);
  if (world.log?.server !== view.server) return ["Reading…"];
  return world.log.lines.length === 0
    ? ["The log has no line about it yet."]
    : wrapped(world.log.lines.map(logLine).join("\n"), cells);
}

function titleOf(view: TextView): Pick<Picture, "title" | "subtitle"> {
  switch (view.name) {
    case "stats":
      return { title: "Statistics of calls" };
    case "tool":
      return { title: clean(view.tool), subtitle: clean(view.server) };
    case "log": {
      const subtitle = view.top === undefined ? "following" : "end follows it";
      return { title: clean(`${view.server} log`), subtitle };
    }
    case "doctor":
      return { title: clean(`${view.server} doctor`) };
    case "result":
      return {
        title: clean(`${view.tool} answered`),
        subtitle: clean(`${view.server}, as the model reads it`),
      };
  }
}

export function textPicture(view: TextView, world: World, { width }: Area): Picture {
  const lines = linesOf(view, world, width);
  const isLog = view.name === "log";
  return {
    ...titleOf(view),
    head: [],
    list: (rows) => textLines(lines, view.top, rows, isLog ? lineColour : () => "text"),
    hints: `↑↓ scroll  ${isLog ? "end follow  " : view.name === "tool" ? "enter try it  " : ""}esc back`,
  };
}
