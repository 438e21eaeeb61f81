/** Draws the list of servers. Pure. */

import type { ConfigProblem } from "../../../shared/protocol/status.ts";
import { counted } from "../../../shared/text/amounts.ts";
import { describeProblem } from "../../../shared/text/failure.ts";
import { chosenAt, type ListState, type ServersRow, serversRows, type World } from "../model/model.ts";
import { type Area, listLines, type Picture, paragraph, pointer } from "./frame.ts";
import { cell, cellRight, clean, type Parts, part, withTilde } from "./line.ts";
import { costText, type Mark, MISTAKE, markOf, REFUSED, tokensText, WAITING, wordsOf } from "./state.ts";

/** From this width on there is room for the transport and for what all tools would cost. */
const WIDE = 80;
const NAME_CELLS = 30;
const FEWEST_NAME_CELLS = 8;
const STATE_CELLS = 13;
const NUMBER_CELLS = 7;
const TRANSPORT_CELLS = 7;

interface Columns {
  isWide: boolean;
  name: number;
}

function columnsFor(rows: readonly ServersRow[], width: number): Columns {
  const isWide = width >= WIDE;
  // The pointer, the sign, the state and the numbers, each with a gap behind it.
  const others =
    3 + 2 + STATE_CELLS + 2 + 2 * (NUMBER_CELLS + 1) + (isWide ? TRANSPORT_CELLS + 1 + NUMBER_CELLS + 1 : 0);
  const longest = rows.reduce((most, row) => Math.max(most, cellsOf(nameOf(row))), 0);
  const most = Math.min(NAME_CELLS + (isWide ? 10 : 0), width - others);
  return { isWide, name: Math.max(FEWEST_NAME_CELLS, Math.min(longest, most)) };
}

/** The cells of a name, estimated: to measure a thousand names at each key would take too long. */
const cellsOf = (name: string): number => (/^[ -~]*$/.test(name) ? name.length : 2 * name.length);

const nameOf = (row: ServersRow): string => {
  if (row.kind === "server") return clean(row.status.name);
  return row.kind === "waiting" || row.kind === "refused" ? clean(row.server) : "";
};

/** For example `mcp.json:12 mcpServers.x.args: expected a list`. */
const mistakeText = ({ file, line, key, message }: ConfigProblem): string => {
  const name = file.split(/[\\/]/).at(-1) ?? "";
  return clean(
    `${name}${line === undefined ? "" : `:${line}`} ${key === undefined ? "" : `${key}: `}${message}`,
  );
};

const named = (isChosen: boolean, mark: Mark, name: string, cells: number): Parts => [
  pointer(isChosen),
  part(`${mark.sign} `, mark.colour),
  part(cell(name, cells), isChosen ? "accent" : "text"),
  "  ",
  part(cell(mark.word, STATE_CELLS), mark.colour),
];

function serverCells(row: Extract<ServersRow, { kind: "server" }>, world: World, { isWide }: Columns): Parts {
  const { status } = row;
  const cost = world.costs.get(status.name);
  const tools = status.toolsKnown ? String(status.toolCount) : "–";
  const all = cost?.isWhole ? tokensText(cost.all) : costText(cost);
  return [
    ...(isWide ? [" ", part(cell(status.transport, TRANSPORT_CELLS), "muted")] : []),
    " ",
    part(cellRight(tools, NUMBER_CELLS), "text"),
    " ",
    part(cellRight(costText(cost), NUMBER_CELLS), cost?.declared ? "text" : "muted"),
    ...(isWide ? [" ", part(cellRight(all, NUMBER_CELLS), "muted")] : []),
  ];
}

function rowLine(row: ServersRow, isChosen: boolean, world: World, columns: Columns): Parts {
  switch (row.kind) {
    case "server":
      return [
        ...named(isChosen, markOf(row.status), nameOf(row), columns.name),
        ...serverCells(row, world, columns),
      ];
    case "waiting":
      return named(isChosen, WAITING, nameOf(row), columns.name);
    case "refused":
      return [...named(isChosen, REFUSED, nameOf(row), columns.name), " ", part(clean(row.reason), "muted")];
    case "problem": {
      const { severity } = row.problem;
      const colour = severity === "error" ? "error" : "warning";
      return [
        pointer(isChosen),
        part(`${MISTAKE.sign} `, colour),
        part(mistakeText(row.problem), isChosen ? "accent" : colour),
      ];
    }
    case "action":
      return [pointer(isChosen), part("» ", "muted"), part(row.label, isChosen ? "accent" : "muted")];
  }
}

/** What the chosen row means, and what Enter does. */
function words(row: ServersRow | undefined, world: World, width: number, most: number): Parts[] {
  if (!row) return [];
  switch (row.kind) {
    case "server": {
      const { text, colour } = wordsOf(row.status, world);
      return paragraph(text, width, most, colour);
    }
    case "waiting":
      return paragraph(
        `Enter asks you about it (/mcp trust). It wants to run ${withTilde(row.question, world.home)}`,
        width,
        most,
        "warning",
      );
    case "refused":
      return paragraph(
        `Not started: ${clean(row.reason)}. Enter asks again (/mcp trust).`,
        width,
        most,
        "warning",
      );
    case "problem":
      return paragraph(
        `${withTilde(describeProblem(row.problem), world.home)} Enter edits your file.`,
        width,
        most,
        "muted",
      );
    case "action":
      return [];
  }
}

const aboutTokens = (tokens: number): string => (tokens === 0 ? "0" : `~${tokensText(tokens)}`);

function subtitle({ servers, costs }: World): string {
  const connected = servers.filter(({ state }) => state === "connected").length;
  const tools = servers.reduce((sum, { toolCount }) => sum + toolCount, 0);
  const tokens = [...costs.values()].reduce((sum, { declared }) => sum + declared, 0);
  const isWhole = [...costs.values()].every((cost) => cost.isWhole);
  const cost = tools === 0 ? "" : ` · ${isWhole ? aboutTokens(tokens) : "…"} tokens`;
  if (servers.length === 0) return "";
  return `${connected} of ${servers.length} connected · ${counted(tools, "tool")}${cost}`;
}

/** How to begin, if no file names a server. */
const begin = ({ files, home }: World, width: number): Parts[] => [
  ...paragraph("No servers are configured.", width, 1, "text"),
  ...paragraph("/mcp add <name> <command or url> adds one.", width, 2, "muted"),
  ...paragraph("/mcp import takes over those of other programs.", width, 2, "muted"),
  ...paragraph("Your files:", width, 1, "muted"),
  ...files.slice(-3).flatMap((file) => paragraph(withTilde(file, home), width, 2, "dim")),
  [],
];

function heading(columns: Columns, filter: string): Parts[] {
  const { isWide, name } = columns;
  const titles = [
    " ".repeat(5),
    cell("server", name),
    "  ",
    cell("state", STATE_CELLS),
    ...(isWide ? [" ", cell("", TRANSPORT_CELLS)] : []),
    " ",
    cellRight("tools", NUMBER_CELLS),
    " ",
    cellRight("tokens", NUMBER_CELLS),
    ...(isWide ? [" ", cellRight("of", NUMBER_CELLS)] : []),
  ].join("");
  const filtered: Parts[] =
    filter === "" ? [] : [[" ", part("Filter: ", "muted"), part(clean(filter), "text"), part("▏", "accent")]];
  return [...filtered, [part(titles, "dim")]];
}

export function serversPicture(list: ListState, world: World, { width, height }: Area): Picture {
  const rows = serversRows(world, list.filter);
  const at = chosenAt(list, rows);
  const columns = columnsFor(rows, width);
  const hasNone = list.filter === "" && rows.every(({ kind }) => kind === "action");
  return {
    title: "MCP servers",
    subtitle: subtitle(world),
    head: hasNone ? begin(world, width) : heading(columns, list.filter),
    list: (size) =>
      listLines(
        { count: rows.length, at, rows: size, empty: "Nothing fits the filter." },
        (index, isChosen) => {
          const row = rows[index];
          return row ? rowLine(row, isChosen, world, columns) : [];
        },
      ),
    foot: words(rows[at], world, width, height >= 20 ? 3 : 2),
    hints: [
      ["↑↓", "move"],
      ["enter", "open"],
      ["type", "to filter"],
      ["esc", list.filter === "" ? "close" : "clear"],
    ],
  };
}
