/**
 * The tools of one server: a filter, and what becomes of each. Thousands of tools are filtered once for each change of the
 * filter; a key that only moves looks at no other tool than the chosen one. Pure, but for what it keeps beside a list.
 */
import type { ToolExposure } from "../../../shared/protocol/person.ts";
import { counted } from "../../../shared/text/amounts.ts";
import { FIRST } from "../../screen/list.ts";
import { hasWords, wordsOf } from "./find.ts";
import {
  type ChoiceView,
  type Effect,
  exposureNow,
  type ToolList,
  type ToolRow,
  type View,
  type World,
} from "./state.ts";

/** All tools that the filter lets through, as the first row. */
const ALL = { key: "\0all" } as const;
export type ToolsRow = typeof ALL | ToolRow;

interface Filtered {
  rows: readonly ToolsRow[];
  find: (key: string) => number;
}

const EMPTY: Filtered = { rows: [], find: () => -1 };
const kept = new WeakMap<ToolList, { filter: string; filtered: Filtered }>();

/**
 * Names that begin with the words, names that hold them, then descriptions. A longer filter needs to look only at what the
 * shorter one let through.
 */
function fitting(
  { rows }: ToolList,
  filter: string,
  before: { filter: string; filtered: Filtered } | undefined,
) {
  const from =
    before && before.filter !== "" && filter.startsWith(before.filter) ? before.filtered.rows.slice(1) : rows;
  const words = wordsOf(filter);
  const [first = ""] = words;
  const ranked: ToolRow[][] = [[], [], []];
  for (const row of from as readonly ToolRow[]) {
    if (!hasWords(row.text, words)) continue;
    const name = row.key.toLowerCase();
    ranked[!hasWords(name, words) ? 2 : name.startsWith(first) ? 0 : 1]?.push(row);
  }
  return ranked.flat();
}

export function filteredTools(list: ToolList | undefined, filter: string): Filtered {
  if (!list || list.rows.length === 0) return EMPTY;
  const before = kept.get(list);
  if (before?.filter === filter) return before.filtered;
  const tools = filter === "" ? list.rows : fitting(list, filter, before);
  const rows: ToolsRow[] = tools.length === 0 ? [] : [ALL, ...tools];
  const at = filter === "" ? list.at : new Map(tools.map(({ key }, i) => [key, i]));
  const filtered: Filtered = { rows, find: (key) => (key === ALL.key ? 0 : (at.get(key) ?? -2) + 1) };
  kept.set(list, { filter, filtered });
  return filtered;
}

export const isTool = (row: ToolsRow | undefined): row is ToolRow => row !== undefined && row !== ALL;

/** Pi's own word for a tool that a search finds. */
export const EXPOSURE_WORDS: Readonly<Record<ToolExposure, string>> = {
  direct: "direct",
  search: "deferred",
  hidden: "hidden",
};

/** Hidden comes last: it takes the tool away from the model. */
export const NEXT: Readonly<Record<ToolExposure, ToolExposure>> = {
  search: "direct",
  direct: "hidden",
  hidden: "search",
};

const HINTS: Readonly<Record<ToolExposure, string>> = {
  direct: "the model always sees them, which costs their tokens",
  search: "ToolSearch finds them when they are needed",
  hidden: "the model never sees them",
};

/**
 * For example `All 45 tools`, `All 12 tools + 3 resources`, `These 3 tools`, `This tool`. `isWhole`: no filter leaves some
 * out. `resources`: how many of them read a resource.
 */
export function allWords(isWhole: boolean, count: number, resources = 0): string {
  if (!isWhole && count === 1) return "This tool";
  if (!isWhole) return `These ${counted(count, "tool")}`;
  const tools = counted(count - resources, "tool");
  return `All ${tools}${resources === 0 ? "" : ` + ${counted(resources, "resource")}`}`;
}

/** `tools`: undefined for all of the server. */
function chooseFor(server: string, tools: readonly string[] | undefined, count: number): ChoiceView {
  return {
    name: "choice",
    title: `${allWords(tools === undefined, count)} of ${server}`,
    text: `Set ${count === 1 ? "it" : "all of them"} to: (this writes your file; patterns and other files may still override some)`,
    options: (["search", "direct", "hidden"] as const).map((to) => ({
      key: to,
      label: EXPOSURE_WORDS[to],
      hint: HINTS[to],
      effect: { type: "expose", server, tools, to },
    })),
    list: FIRST,
  };
}

type ToolsView = Extract<View, { name: "tools" }>;

/** What Enter opens for the row at this position: the tool, or the choice for all that are listed. */
export function enterTools({ server, list }: ToolsView, at: number, world: World): View | undefined {
  const { rows } = filteredTools(world.tools.get(server), list.filter);
  const row = rows[at];
  if (isTool(row)) return { name: "tool", server, tool: row.key, top: 0 };
  const tools = list.filter === "" ? undefined : rows.filter(isTool).map(({ key }) => key);
  return row && chooseFor(server, tools, rows.length - 1);
}

/** The tool that Ctrl+T tries. A hidden one cannot be called. */
export function triedIn({ server, list }: ToolsView, at: number, world: World): Effect | undefined {
  const row = filteredTools(world.tools.get(server), list.filter).rows[at];
  return isTool(row) && row.serversWord !== "pages" ? { type: "try", server, tool: row.key } : undefined;
}

/** What Tab does: a tool changes; of all that are listed it asks, as Enter does. */
export function toggled(view: ToolsView, at: number, world: World): Effect | View | undefined {
  const { server, list } = view;
  const row = filteredTools(world.tools.get(server), list.filter).rows[at];
  if (!isTool(row)) return enterTools(view, at, world);
  if (row.serversWord === "pages") return undefined;
  return { type: "expose", server, tools: [row.key], to: NEXT[exposureNow(world, server, row)] };
}
