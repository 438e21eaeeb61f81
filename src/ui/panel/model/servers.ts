/**
 * The first view of the panel: one list with servers, what waits or is wrong, and actions; and what its box finds in servers,
 * tools of all servers, and actions. What needs attention comes first. Pure.
 */
import type { ConfigProblem, ServerStatus } from "../../../shared/protocol/session.ts";
import { describeProblem } from "../../../shared/text/failure.ts";
import { FIRST, type Key, type Row } from "../../screen/list.ts";
import { type FoundTool, foundIn, hasWords, wordsOf } from "./find.ts";
import { type MenuRow, menuOf } from "./menu.ts";
import type { Effect, View, World } from "./state.ts";

export type ServersRow = Row &
  (
    | { kind: "server"; status: ServerStatus }
    /** A server of the project that waits for the person's consent. */
    | { kind: "waiting"; server: string; question: string }
    | { kind: "refused"; server: string; reason: string }
    /** A file of the project that Pi does not read. */
    | { kind: "unread"; file: string }
    | { kind: "problem"; problem: ConfigProblem }
    | { kind: "tool"; tool: FoundTool }
    | { kind: "action"; label: string; does: Effect | View }
  );

const EDIT: Effect = { type: "edit", project: false };

const action = (key: string, label: string, does: Effect | View): Action => ({
  key,
  kind: "action",
  label,
  does,
});

type Action = Extract<ServersRow, { kind: "action" }>;

const ACTIONS: readonly Action[] = [
  action("search", "Try a search", { name: "search", list: FIRST }),
  action("stats", "Statistics of calls", { name: "stats", top: 0 }),
  action("add", "Add a server", { type: "set-up", word: "add" }),
  action("import", "Import from other programs", { type: "set-up", word: "import" }),
  action("decisions", "Decisions about servers of projects and skills", { name: "decisions", list: FIRST }),
  action("edit", "Edit the configuration", EDIT),
];
/** Those that need no server. */
const FIRST_ACTIONS = ACTIONS.slice(2);

/** Other words for the actions that a person may type. */
const ALSO: Readonly<Record<string, string>> = {
  search: "find tools toolsearch",
  stats: "usage tokens",
  add: "new install",
  import: "cursor claude codex vs code",
  decisions: "trust consent allowed refused",
  edit: "mcp.json settings file",
};

/** Mistakes that come before the servers: a file may have twenty. */
const FIRST_MISTAKES = 3;

const needsAttention = ({ state, waits }: ServerStatus): boolean =>
  state === "failed" || state === "needs-auth" || waits !== undefined;

/** Everything without the actions: what a person has to look at first, then the rest in the order of the files. */
function allRows({ servers, questions, refused, problems, unread }: World): ServersRow[] {
  const row = (status: ServerStatus): ServersRow => ({
    key: `server ${status.name}`,
    kind: "server",
    status,
  });
  const mistakes = problems.map(
    (problem): ServersRow => ({ key: `problem ${describeProblem(problem)}`, kind: "problem", problem }),
  );
  return [
    ...servers.filter(needsAttention).map(row),
    ...questions.map(
      ({ server, question }): ServersRow => ({ key: `waiting ${server}`, kind: "waiting", server, question }),
    ),
    ...mistakes.slice(0, FIRST_MISTAKES),
    ...servers.filter((status) => !needsAttention(status)).map(row),
    ...refused.map(
      ({ name, reason }): ServersRow => ({ key: `refused ${name}`, kind: "refused", server: name, reason }),
    ),
    ...unread.map((file): ServersRow => ({ key: `unread ${file}`, kind: "unread", file })),
    ...mistakes.slice(FIRST_MISTAKES),
  ];
}

/** Letters of a state's name that are needed: with fewer, nearly every server would fit. */
const STATE_CHARS = 3;

/** The rows whose names begin with the words come first, then those that hold them, then those that say them elsewhere. */
function fitting(rows: readonly ServersRow[], words: readonly string[]): ServersRow[] {
  const ranked: ServersRow[][] = [[], [], []];
  const [first = ""] = words;
  for (const row of rows) {
    const name = nameOf(row).toLowerCase();
    if (hasWords(name, words)) ranked[name.startsWith(first) ? 0 : 1]?.push(row);
    else if (hasWords(`${name} ${saysOf(row, first)}`.toLowerCase(), words)) ranked[2]?.push(row);
  }
  return ranked.flat();
}

function nameOf(row: ServersRow): string {
  if (row.kind === "server") return row.status.name;
  if (row.kind === "unread") return row.file;
  return row.kind === "waiting" || row.kind === "refused" ? row.server : "";
}

function saysOf(row: ServersRow, first: string): string {
  if (row.kind === "problem") return describeProblem(row.problem);
  if (row.kind !== "server") return "";
  const { state, description = "" } = row.status;
  const words = state === "needs-auth" ? "needs sign-in needs-auth" : state;
  return `${description}${first.length >= STATE_CHARS ? ` ${words}` : ""}`;
}

/** Whether each word begins a word of the label or of the others, and one of them is the label's. */
function isCalled(label: string, others: string, words: readonly string[]): boolean {
  const begins = (text: string) => (word: string) => ` ${text.toLowerCase()}`.includes(` ${word}`);
  return words.some(begins(label)) && words.every(begins(`${label} ${others}`));
}

/** Letters from which on the actions of single servers are looked through, and how many of them are listed. */
const ACTION_CHARS = 3;
const SERVER_ACTIONS = 30;

/** For example `Log of github`, for `log git`. */
function serverActions(servers: readonly ServerStatus[], filter: string): ServersRow[] {
  const words = wordsOf(filter);
  if (filter.trim().length < ACTION_CHARS) return [];
  const rows: ServersRow[] = [];
  for (const status of servers) {
    for (const { key, label, does } of menuOf(status, undefined)) {
      if (!isCalled(label, status.name, words)) continue;
      const joined =
        label === "Disable in this project" ? label.replace("Disable", `Disable ${status.name}`) : label;
      rows.push(
        action(`${key} ${status.name}`, joined === label ? `${label}: ${status.name}` : joined, does),
      );
      if (rows.length === SERVER_ACTIONS) return rows;
    }
  }
  return rows;
}

const toolRow = (tool: FoundTool): ServersRow => ({ key: `tool ${tool.name}`, kind: "tool", tool });

export function serversRows(world: World, filter: string): ServersRow[] {
  const { servers, index } = world;
  const all = allRows(world);
  const actions = servers.length === 0 ? FIRST_ACTIONS : ACTIONS;
  const words = wordsOf(filter);
  if (words.length === 0) return [...all, ...actions];
  const { named, described } = foundIn(index, filter);
  const search = action("search-for", `Search the tools for "${filter.trim()}", as the model would`, {
    name: "search",
    list: { ...FIRST, filter },
  });
  return [
    ...fitting(all, words),
    ...actions.filter(({ key, label }) => isCalled(`${label} ${ALSO[key] ?? ""}`, "", words)),
    ...named.map(toolRow),
    ...serverActions(servers, filter),
    ...described.map(toolRow),
    ...(servers.length === 0 ? [] : [search]),
  ];
}

/** What Enter does; undefined: nothing. */
export function doesOf(row: ServersRow): Effect | View | undefined {
  if (row.kind === "unread") return undefined;
  if (row.kind === "server") return { name: "server", server: row.status.name, list: FIRST };
  if (row.kind === "action") return row.does;
  if (row.kind === "tool") return { name: "tool", server: row.tool.server, tool: row.tool.tool, top: 0 };
  return row.kind === "problem" ? EDIT : { type: "trust" };
}

/** Where Tab goes: from the servers to the actions, and back. */
export function otherEnd(rows: readonly ServersRow[], at: number): number {
  const first = rows.findIndex(({ kind }) => kind === "action");
  return first === -1 || at >= first ? 0 : first;
}

/** The keys that act on a server's row at once, by the row of its menu that each stands for. */
const MENU_KEYS: Readonly<Partial<Record<string, readonly string[]>>> = {
  reconnect: ["reconnect"],
  switch: ["enable", "disable", "on"],
  log: ["log"],
  signIn: ["sign-in"],
};

export function menuRowOf(status: ServerStatus, key: Key): MenuRow | undefined {
  const wanted = typeof key === "string" ? MENU_KEYS[key] : undefined;
  return wanted && menuOf(status, undefined).find((row) => wanted.includes(row.key));
}

/** The keys that a row takes, and what each does there. */
export function rowKeys(row: ServersRow | undefined): string {
  if (row?.kind === "tool") return "ctrl+t try it";
  if (row?.kind !== "server") return "";
  const { status } = row;
  const signs = menuRowOf(status, "signIn") ? "  ctrl+s sign in" : "";
  if (status.isOff) return "ctrl+d switch on";
  if (status.state === "disabled") return "ctrl+d enable";
  const connect = status.state === "connected" ? "reconnect" : "connect";
  return `ctrl+r ${connect}  ctrl+d disable  ctrl+l log${signs}`;
}
