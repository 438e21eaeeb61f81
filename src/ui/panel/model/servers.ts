/** The first view: every server, whatever keeps one from running, and what concerns all of them. Pure. */

import type { ConfigProblem, ServerStatus } from "../../../shared/protocol/status.ts";
import { describeProblem } from "../../../shared/text/failure.ts";
import type { Key } from "./keys.ts";
import { chosenAt, FIRST, isMove, type ListState, moveIn, typed } from "./list.ts";
import { back, push, type State, type Step, withView } from "./state.ts";
import type { World } from "./world.ts";

type ActionName = "search" | "stats" | "add" | "import" | "edit";

export type ServersRow =
  | { key: string; kind: "server"; status: ServerStatus }
  /** A server of the project that waits for the person's consent. */
  | { key: string; kind: "waiting"; server: string; question: string }
  | { key: string; kind: "refused"; server: string; reason: string }
  | { key: string; kind: "problem"; problem: ConfigProblem }
  | { key: string; kind: "action"; action: ActionName; label: string };

const action = (name: ActionName, label: string): ServersRow => ({
  key: name,
  kind: "action",
  action: name,
  label,
});

/** What concerns all servers. */
const ACTIONS: readonly ServersRow[] = [
  action("search", "Try a search"),
  action("stats", "Statistics of calls"),
  action("add", "Add a server"),
  action("import", "Import from other programs"),
  action("edit", "Edit the configuration"),
];
/** Those that need no server. */
const FIRST_ACTIONS = ACTIONS.slice(2);

const textOf = (row: ServersRow): string => {
  if (row.kind === "server") return `${row.status.name} ${row.status.state} ${row.status.transport}`;
  if (row.kind === "problem") return describeProblem(row.problem);
  return row.kind === "action" ? row.label : row.server;
};

/** Mistakes come last: a file may have twenty, and a list of servers is what a person opens the panel for. */
export function serversRows(world: World, filter: string): ServersRow[] {
  const rows: ServersRow[] = [
    ...world.servers.map((status) => ({ key: `server ${status.name}`, kind: "server" as const, status })),
    ...world.questions.map(({ server, question }) => ({
      key: `waiting ${server}`,
      kind: "waiting" as const,
      server,
      question,
    })),
    ...world.refused.map(({ name, reason }) => ({
      key: `refused ${name}`,
      kind: "refused" as const,
      server: name,
      reason,
    })),
    ...world.problems.map((problem) => ({
      key: `problem ${describeProblem(problem)}`,
      kind: "problem" as const,
      problem,
    })),
  ];
  if (filter === "") return [...rows, ...(world.servers.length === 0 ? FIRST_ACTIONS : ACTIONS)];
  const wanted = filter.toLowerCase();
  return rows.filter((row) => textOf(row).toLowerCase().includes(wanted));
}

function enter(state: State, row: ServersRow | undefined): Step {
  if (!row) return { state };
  if (row.kind === "server") {
    return { state: push(state, { name: "server", server: row.status.name, list: FIRST }) };
  }
  if (row.kind === "waiting" || row.kind === "refused") return { state, effect: { type: "trust" } };
  if (row.kind === "action" && row.action === "search") {
    return { state: push(state, { name: "search", query: "", list: FIRST }) };
  }
  if (row.kind === "action" && row.action === "stats") {
    return { state: push(state, { name: "stats", top: 0 }) };
  }
  if (row.kind === "action" && (row.action === "add" || row.action === "import")) {
    return { state, effect: { type: "set-up", word: row.action } };
  }
  return { state, effect: { type: "edit", project: false } };
}

export function onServersKey(
  state: State,
  list: ListState,
  key: Key,
  { world, page }: { world: World; page: number },
): Step {
  const rows = serversRows(world, list.filter);
  if (isMove(key)) {
    return { state: withView(state, { name: "servers", list: moveIn(list, rows, key, { page }) }) };
  }
  if (key === "enter") return enter(state, rows[chosenAt(list, rows)]);
  if (key === "escape" && list.filter === "") return back(state);
  const filter = key === "escape" ? "" : typed(list.filter, key === "space" ? { text: " " } : key);
  return {
    state: filter === undefined ? state : withView(state, { name: "servers", list: { ...FIRST, filter } }),
  };
}
