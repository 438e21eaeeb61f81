/**
 * The panel without a screen. Owns: what each view lists, what each key does in it, and which effect it asks for. Must not:
 * draw, wait or know Pi. To add a view: its type in state.ts, its rows in `listOf`, its picture in panel/draw. Pure.
 */
import { interruptText } from "../../../report/hub.ts";
import { lacksKey } from "../../../report/status.ts";
import type { ServerDetails, ServerKey } from "../../../shared/protocol/person.ts";
import type { ConfigProblem, ServerStatus } from "../../../shared/protocol/session.ts";
import { describeProblem } from "../../../shared/text/failure.ts";
import { chosenAt, FIRST, isMove, type Key, moveIn, type Row, scrolled, typed } from "./list.ts";
import {
  type ChoiceView,
  type Effect,
  type ListView,
  popped,
  push,
  type State,
  type Step,
  shown,
  type TextView,
  type View,
  type World,
  withView,
} from "./state.ts";
import { enterTools, filteredTools, toggled } from "./tools.ts";

export interface MenuRow extends Row {
  label: string;
  /** What holds now. */
  value?: string | undefined;
  does: Effect | View;
}

const menuRow = (key: string, label: string, does: Effect | View, value?: string): MenuRow => ({
  key,
  label,
  value,
  does,
});

/** A question before something is lost. The first answer changes nothing. */
const confirm = (title: string, text: string, label: string, effect: Effect): ChoiceView => ({
  name: "choice",
  title,
  text,
  options: [
    { key: "no", label: "No, go back" },
    { key: "yes", label, effect },
  ],
  list: FIRST,
});

/** Other sessions that use the process are interrupted only after a yes. */
function reconnect(status: ServerStatus): MenuRow {
  const { name: server, state } = status;
  const effect: Effect = { type: "reconnect", server };
  const text = interruptText([status]);
  const does = text === undefined ? effect : confirm(`Reconnect ${server}?`, text, "Reconnect it", effect);
  return menuRow("reconnect", state === "connected" ? "Reconnect" : "Connect", does);
}

/** A sign-in is offered where the server takes one; `/mcp auth` asks for the key of a server that wants a key. */
function signIn(status: ServerStatus): MenuRow[] {
  const { name: server, transport } = status;
  if (transport === "stdio") return [];
  const isSignedIn = status.signIn?.state === "signed-in";
  const label = lacksKey(status) ? "Say where its key is" : isSignedIn ? "Sign in again" : "Sign in";
  const text = "The tokens are revoked where that is possible, and forgotten.";
  const out = confirm(`Sign out of ${server}?`, text, "Sign out", { type: "sign-out", server });
  return [
    ...(status.signIn || lacksKey(status) ? [menuRow("sign-in", label, { type: "sign-in", server })] : []),
    ...(isSignedIn ? [menuRow("sign-out", "Sign out", out)] : []),
  ];
}

interface Setting {
  label: string;
  text: string;
  /** Value -> what it means. */
  values: Readonly<Record<string, string>>;
}

/** The keys of the entry that a person may want to change often. */
const SETTINGS: Readonly<Record<ServerKey["key"], Setting>> = {
  lifecycle: {
    label: "Lifecycle",
    text: "When does it run?",
    values: {
      lazy: "started by the first call",
      eager: "started with the session",
      "keep-alive": "always up",
    },
  },
  approve: {
    label: "Approval",
    text: "Which calls of its tools ask you?",
    values: {
      never: "no call asks",
      destructive: "calls ask unless the server says that they only read",
      always: "every call asks",
    },
  },
  toolPrefix: {
    label: "Tool names",
    text: "How are its tools named?",
    values: {
      server: "server__tool",
      short: "the server's name without -mcp or -server",
      none: "tool",
      mcp: "mcp__server__tool",
    },
  },
  shared: {
    label: "Sharing",
    text: "Do your sessions use one process of it? A server that keeps something for each of them, such as a browser, needs one for each.",
    values: {
      on: "one for all of them",
      off: "one for each",
    },
  },
};

const changeTo = (key: ServerKey["key"], value: string): ServerKey =>
  key === "shared" ? { key, value: value === "on" } : ({ key, value } as ServerKey);

function settings(server: string, details: ServerDetails): MenuRow[] {
  const { lifecycle, approve, toolPrefix, ownPrefix, shared } = details;
  const row = (key: ServerKey["key"], value: string): MenuRow => {
    const { label, text, values } = SETTINGS[key];
    const options = Object.entries(values).map(([to, hint]) => ({
      key: to,
      label: to,
      hint,
      effect: { type: "set" as const, server, change: changeTo(key, to) },
    }));
    const list = { ...FIRST, key: value };
    return menuRow(
      key,
      label,
      { name: "choice", title: `${label} of ${server}`, text, options, list },
      value,
    );
  };
  return [
    row("lifecycle", lifecycle),
    ...(approve === "rules" ? [] : [row("approve", approve === "settings" ? "as settings say" : approve)]),
    row("toolPrefix", ownPrefix ? toolPrefix : `${toolPrefix} (settings)`),
    ...(shared === undefined ? [] : [row("shared", shared ? "on" : "off")]),
  ];
}

export function menuOf(status: ServerStatus, details: ServerDetails | undefined): MenuRow[] {
  const { name: server, state, toolsKnown, toolCount } = status;
  const enable = (project: boolean): Effect => ({ type: "enable", server, enabled: true, project });
  const disable = (project: boolean, where: string): ChoiceView =>
    confirm(`Disable ${server}?`, `${where} Its tools go at once.`, "Disable it", {
      type: "enable",
      server,
      enabled: false,
      project,
    });
  // What can be done in any state. The dialog of `remove` asks before it removes something.
  const always = [
    menuRow("doctor", "Doctor", { name: "doctor", server, top: 0 }, "what can be wrong"),
    menuRow("remove", "Remove", { type: "remove", server }),
  ];
  if (state === "disabled") {
    return [
      menuRow("enable", "Enable", enable(false), "in the file that disables it"),
      menuRow("enable-project", "Enable in this project", enable(true)),
      ...always,
    ];
  }
  const count = (details?.tools.names.length ?? toolCount).toLocaleString("en");
  const here = "This project's file switches it off. It stays on in other folders.";
  const everywhere = "It is switched off in the file that defines it.";
  return [
    ...(toolsKnown ? [menuRow("tools", "Tools", { name: "tools", server, list: FIRST }, count)] : []),
    menuRow("log", "Log", { name: "log", server, top: undefined }),
    reconnect(status),
    ...signIn(status),
    ...(details ? settings(server, details) : []),
    menuRow("disable", "Disable", disable(false, everywhere), "everywhere"),
    menuRow("disable-project", "Disable in this project", disable(true, here)),
    ...always,
  ];
}

export const statusOf = ({ servers }: Pick<World, "servers">, server: string): ServerStatus | undefined =>
  servers.find(({ name }) => name === server);

export function menuIn(world: World, server: string): MenuRow[] {
  const status = statusOf(world, server);
  return status ? menuOf(status, world.details.get(server)) : [];
}

export type ServersRow = Row &
  (
    | { kind: "server"; status: ServerStatus }
    /** A server of the project that waits for the person's consent. */
    | { kind: "waiting"; server: string; question: string }
    | { kind: "refused"; server: string; reason: string }
    | { kind: "problem"; problem: ConfigProblem }
    | { kind: "action"; label: string; does: Effect | View }
  );

const EDIT: Effect = { type: "edit", project: false };

const action = (key: string, label: string, does: Effect | View): ServersRow => ({
  key,
  kind: "action",
  label,
  does,
});

const ACTIONS: readonly ServersRow[] = [
  action("search", "Try a search", { name: "search", list: FIRST }),
  action("stats", "Statistics of calls", { name: "stats", top: 0 }),
  action("add", "Add a server", { type: "set-up", word: "add" }),
  action("import", "Import from other programs", { type: "set-up", word: "import" }),
  action("edit", "Edit the configuration", EDIT),
];
/** Those that need no server. */
const FIRST_ACTIONS = ACTIONS.slice(2);

const textOf = (row: ServersRow): string => {
  if (row.kind === "server") return `${row.status.name} ${row.status.state} ${row.status.transport}`;
  if (row.kind === "problem") return describeProblem(row.problem);
  return row.kind === "action" ? row.label : row.server;
};

/** Mistakes come last: a file may have twenty, and a list of servers is what a person opens the panel for. */
export function serversRows({ servers, questions, refused, problems }: World, filter: string): ServersRow[] {
  const rows: ServersRow[] = [
    ...servers.map((status): ServersRow => ({ key: `server ${status.name}`, kind: "server", status })),
    ...questions.map(
      ({ server, question }): ServersRow => ({ key: `waiting ${server}`, kind: "waiting", server, question }),
    ),
    ...refused.map(
      ({ name, reason }): ServersRow => ({ key: `refused ${name}`, kind: "refused", server: name, reason }),
    ),
    ...problems.map(
      (problem): ServersRow => ({ key: `problem ${describeProblem(problem)}`, kind: "problem", problem }),
    ),
  ];
  if (filter === "") return [...rows, ...(servers.length === 0 ? FIRST_ACTIONS : ACTIONS)];
  const wanted = filter.toLowerCase();
  return rows.filter((row) => textOf(row).toLowerCase().includes(wanted));
}

function doesOf(row: ServersRow): Effect | View {
  if (row.kind === "server") return { name: "server", server: row.status.name, list: FIRST };
  if (row.kind === "action") return row.does;
  return row.kind === "problem" ? EDIT : { type: "trust" };
}

/** Opens the view, or asks for the effect. */
const carryOn = (state: State, does: Effect | View | undefined): Step => {
  if (!does) return { state };
  return "type" in does ? { state, effect: does } : { state: push(state, does) };
};

interface Listing {
  rows: readonly Row[];
  /** The position of a key, or -1, where that is known without a search. */
  find?: (key: string) => number;
  enter(state: State, at: number): Step;
}

function listOf(view: ListView, world: World): Listing {
  switch (view.name) {
    case "servers": {
      const rows = serversRows(world, view.list.filter);
      return { rows, enter: (state, at) => carryOn(state, rows[at] && doesOf(rows[at])) };
    }
    case "server": {
      const rows = menuIn(world, view.server);
      return { rows, enter: (state, at) => carryOn(state, rows[at]?.does) };
    }
    case "choice":
      return {
        rows: view.options,
        enter: (state, at) => {
          const option = view.options[at];
          return option ? carryOn(popped(state) ?? state, option.effect) : { state };
        },
      };
    case "tools":
      return {
        ...filteredTools(world.tools.get(view.server), view.list.filter),
        enter: (state, at) => carryOn(state, enterTools(view, at, world)),
      };
    case "search": {
      const rows = world.tried?.hits ?? [];
      const toolsAt = ({ server, tool }: (typeof rows)[number]): View => ({
        name: "tools",
        server,
        list: { ...FIRST, key: tool },
      });
      return { rows, enter: (state, at) => carryOn(state, rows[at] && toolsAt(rows[at])) };
    }
  }
}

/** `lines`: of the whole text; `page`: of those that are seen. */
function onTextKey(state: State, view: TextView, key: Key, { lines, page }: Surroundings): Step {
  if (key === "escape") return back(state);
  if (!isMove(key)) return { state };
  const last = Math.max(0, lines - page);
  const top = scrolled(Math.min(view.top ?? last, last), lines, key, page);
  // At its end a log is followed again.
  if (view.name === "log")
    return { state: withView(state, { ...view, top: top === last ? undefined : top }) };
  return { state: withView(state, { ...view, top }) };
}

const back = (state: State): Step => {
  const before = popped(state);
  return before ? { state: before } : { state, effect: { type: "close" } };
};

/**
 * What a key needs to know beside the state. `page`: rows of the list, or lines of the text, that are seen at once;
 * `lines`: of the whole text.
 */
interface Surroundings {
  world: World;
  page: number;
  lines: number;
}

export function onKey(before: State, key: Key, around: Surroundings): Step {
  const state = { ...before, notice: undefined };
  const view = shown(state);
  if ("top" in view) return onTextKey(state, view, key, around);
  const { world, page } = around;
  const { rows, find, enter } = listOf(view, world);
  const { list } = view;
  const show = (next: typeof list): Step => ({ state: withView(state, { ...view, list: next }) });
  if (isMove(key)) return show(moveIn(list, rows, key, { page, ...(find ? { find } : {}) }));
  const at = chosenAt(list, rows, find);
  if (key === "enter") return enter(state, at);
  if (key === "space" && view.name === "tools") return carryOn(state, toggled(view, at, world));
  if (key === "escape" && list.filter === "") return back(state);
  if (view.name === "server" || view.name === "choice") return { state };
  const filter = key === "escape" ? "" : typed(list.filter, key === "space" ? { text: " " } : key);
  return filter === undefined ? { state } : show({ ...FIRST, filter });
}

const serverOf = (view: View): string | undefined => ("server" in view ? view.server : undefined);

/**
 * The state after the session has changed: views of a server that is gone are closed, with a word about it. A server that
 * only waits for its consent is gone, too.
 */
export function onWorld(state: State, world: World): State {
  const gone = state.views.map(serverOf).find((server) => server !== undefined && !statusOf(world, server));
  if (gone === undefined) return state;
  let left = state;
  while (left.views.some((view) => serverOf(view) === gone)) left = popped(left) ?? left;
  return { ...left, notice: { text: `${gone} is no longer configured.`, level: "info" } };
}

/** Names the report of a view in the reading of the session. */
export const reportKey = (view: View): string => `${view.name} ${serverOf(view) ?? ""}`;
