/** Draws the tools of a server, a tool, and a tried search. Only the rows that are seen are looked at. Pure. */
import type { ToolExposure } from "../../../shared/protocol/panel.ts";
import { counted, formatMs } from "../../../shared/text/amounts.ts";
import { firstSentence } from "../../../shared/text/unprintable.ts";
import {
  allWords,
  chosenAt,
  EXPOSURE_WORDS,
  exposureNow,
  filteredTools,
  isTool,
  type ToolRow,
  type ToolsRow,
  type View,
  type World,
} from "../model/model.ts";
import { type Area, listLines, type Picture, paragraph, pointer } from "./frame.ts";
import { type Colour, cell, cellRight, clean, type Parts, part, withTilde } from "./line.ts";
import { tokensText } from "./state.ts";

const WIDE = 80;
const EXPOSURE_CELLS = 8;
const TOKEN_CELLS = 6;

export const EXPOSURE_MARKS: Readonly<Record<ToolExposure, { sign: string; colour: Colour }>> = {
  direct: { sign: "●", colour: "success" },
  search: { sign: "○", colour: "muted" },
  hidden: { sign: "–", colour: "dim" },
};

const nameCells = (width: number): number =>
  width >= WIDE
    ? Math.min(40, Math.floor(width / 3))
    : Math.max(8, width - 5 - EXPOSURE_CELLS - TOKEN_CELLS - 3);

export const tokensOfTool = ({ tokensOf }: World, { name }: Pick<ToolRow, "name">): string => {
  const tokens = name === undefined ? undefined : tokensOf(name);
  return tokens === undefined ? "–" : tokensText(tokens);
};

function toolLine(
  row: ToolRow,
  isChosen: boolean,
  { server, world, width }: { server: string; world: World; width: number },
): Parts {
  const exposure = exposureNow(world, server, row);
  const { sign, colour } = EXPOSURE_MARKS[exposure];
  return [
    pointer(isChosen),
    part(`${sign} `, colour),
    part(
      cell(clean(row.key), nameCells(width)),
      isChosen ? "accent" : exposure === "hidden" ? "dim" : "text",
    ),
    " ",
    part(cell(EXPOSURE_WORDS[exposure], EXPOSURE_CELLS), colour),
    " ",
    part(cellRight(tokensOfTool(world, row), TOKEN_CELLS), "muted"),
    ...(width >= WIDE ? ["  ", part(firstSentence(row.description), "dim")] : []),
  ];
}

/** The rule that decides about the tool, and where it stands. */
export function whyText({ place }: ToolRow, home: string): string {
  if (!place) return "No rule names it, so ToolSearch finds it.";
  const at = place.line === undefined ? place.file : `${place.file}:${place.line}`;
  return withTilde(`By ${place.rule} in ${at}.`, home);
}

function aboutTool(row: ToolsRow | undefined, world: World, width: number): Parts[] {
  if (!row) return [];
  if (!isTool(row)) return paragraph("Enter chooses for all tools that are listed.", width, 1, "muted");
  return [
    ...paragraph(firstSentence(row.description) || "It has no description.", width, 2, "text"),
    ...paragraph(whyText(row, world.home), width, 2, "muted"),
  ];
}

const filterLine = (label: string, text: string): Parts => [
  " ",
  part(label, "muted"),
  part(clean(text), "text"),
  part("▏", "accent"),
];

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
    ? ` · ~${tokensText(cost.declared)} of ~${tokensText(cost.all)} tokens declared`
    : "";
  return {
    title: `${clean(server)} tools`,
    subtitle: all
      ? `${count.toLocaleString("en")}${list.filter === "" ? "" : ` of ${all.rows.length.toLocaleString("en")}`}${declared}`
      : "",
    head: [filterLine("Filter: ", list.filter)],
    list: (size) =>
      listLines(
        {
          count: rows.length,
          at,
          rows: size,
          empty: all ? "No tool fits the filter." : "Reading the tools…",
        },
        (index, isChosen) => {
          const row = rows[index];
          if (!row) return [];
          if (isTool(row)) return toolLine(row, isChosen, { server, world, width });
          const words = allWords(list.filter === "", count);
          return [pointer(isChosen), part("» ", "muted"), part(words, isChosen ? "accent" : "muted")];
        },
      ),
    foot: aboutTool(rows[at], world, width),
    hints: [
      ["↑↓", "move"],
      ["space", "direct/deferred/hidden"],
      ["enter", "open"],
      ["esc", list.filter === "" ? "back" : "clear"],
    ],
  };
}

const SCORE_CELLS = 7;

/** For example `0.42 ms`, `12 ms`. */
const msText = (ms: number): string => (ms < 10 ? `${ms.toFixed(2)} ms` : formatMs(ms));

export function searchPicture(
  { query, list }: Extract<View, { name: "search" }>,
  world: World,
  { width }: Area,
): Picture {
  const { tried } = world;
  const hits = tried?.hits ?? [];
  const at = chosenAt(list, hits);
  const cells = width >= WIDE ? Math.min(48, Math.floor(width / 2.5)) : Math.max(8, width - 20);
  return {
    title: "Try a search",
    subtitle:
      tried && query !== "" ? `${counted(tried.count, "tool")} ranked in ${msText(tried.tookMs)}` : "",
    head: [
      filterLine("Search: ", query),
      [part(`     ${cell("#", 4)}${cell("tool", cells)} ${cellRight("score", SCORE_CELLS)}`, "dim")],
    ],
    list: (size) =>
      listLines(
        {
          count: hits.length,
          at,
          rows: size,
          empty:
            query === ""
              ? "Type what a tool should do, as a model would ask ToolSearch."
              : "No tool matches.",
        },
        (index, isChosen) => {
          const hit = hits[index];
          if (!hit) return [];
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
        },
      ),
    foot: hits.length === 0 ? [] : paragraph("● would be loaded  ○ would only be named", width, 1, "muted"),
    hints: [
      ["type", "to search"],
      ["↑↓", "move"],
      ["enter", "show"],
      ["esc", query === "" ? "back" : "clear"],
    ],
  };
}
