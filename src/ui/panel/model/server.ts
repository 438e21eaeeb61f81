/** The view of one server: what can be done with it, as a menu. Pure. */
import { lacksKey } from "../../../report/sign-in.ts";
import type { ServerDetails, ServerKey } from "../../../shared/protocol/panel.ts";
import type { ServerStatus } from "../../../shared/protocol/status.ts";
import type { Key } from "./keys.ts";
import { chosenAt, FIRST, isMove, type ListState, moveIn } from "./list.ts";
import {
  back,
  type ChoiceView,
  type Effect,
  type Option,
  push,
  type State,
  type Step,
  type View,
  withView,
} from "./state.ts";
import type { World } from "./world.ts";

export interface MenuRow {
  key: string;
  label: string;
  /** What holds now. */
  value?: string;
  does: { effect: Effect } | { view: View };
}

/** A question before something is lost. The first answer changes nothing. */
const confirm = (title: string, text: string, label: string, effect: Effect): { view: ChoiceView } => ({
  view: {
    name: "choice",
    title,
    text,
    options: [
      { key: "no", label: "No, go back" },
      { key: "yes", label, effect },
    ],
    list: FIRST,
  },
});

const disable = (server: string, project: boolean): { view: ChoiceView } =>
  confirm(
    `Disable ${server}?`,
    project
      ? "This project's file switches it off. It stays on in other folders. Its tools go at once."
      : "It is switched off in the file that defines it. Its tools go at once.",
    "Disable it",
    { type: "enable", server, enabled: false, project },
  );

/** A sign-in is offered where the server takes one; `/mcp auth` asks for the key of a server that wants a key. */
function signIn(server: ServerStatus): MenuRow[] {
  const { name, signIn: status, transport } = server;
  if (transport === "stdio") return [];
  const rows: MenuRow[] = [];
  const isSignedIn = status?.state === "signed-in";
  if (status || lacksKey(server)) {
    const label = lacksKey(server) ? "Say where its key is" : isSignedIn ? "Sign in again" : "Sign in";
    rows.push({ key: "sign-in", label, does: { effect: { type: "sign-in", server: name } } });
  }
  if (isSignedIn) {
    const text = "The tokens are revoked where that is possible, and forgotten.";
    const does = confirm(`Sign out of ${name}?`, text, "Sign out", { type: "sign-out", server: name });
    rows.push({ key: "sign-out", label: "Sign out", does });
  }
  return rows;
}

/** One value of several, of which one holds now. */
function choose(
  title: string,
  text: string,
  options: readonly Option[],
  current: string | undefined,
): { view: ChoiceView } {
  return { view: { name: "choice", title, text, options, list: { ...FIRST, key: current } } };
}

const LIFECYCLES = {
  lazy: "started by the first call",
  eager: "started with the session",
  "keep-alive": "always up",
};
const APPROVALS = {
  never: "no call asks",
  destructive: "calls ask unless the server says that they only read",
  always: "every call asks",
};
const PREFIXES = {
  server: "server__tool",
  short: "the server's name without -mcp or -server",
  none: "tool",
  mcp: "mcp__server__tool",
};

const options = (server: string, key: ServerKey["key"], values: Readonly<Record<string, string>>): Option[] =>
  Object.entries(values).map(([value, hint]) => ({
    key: value,
    label: value,
    hint,
    effect: { type: "set", server, change: { key, value } as ServerKey },
  }));

/** The keys of the entry that a person may want to change often. */
function settings(server: string, details: ServerDetails): MenuRow[] {
  const { lifecycle, approve, toolPrefix, ownPrefix } = details;
  const row = (
    key: ServerKey["key"],
    label: string,
    value: string,
    values: Record<string, string>,
    text: string,
  ): MenuRow => ({
    key,
    label,
    value,
    does: choose(`${label} of ${server}`, text, options(server, key, values), value),
  });
  return [
    row("lifecycle", "Lifecycle", lifecycle, LIFECYCLES, "When does it run?"),
    ...(approve === "rules"
      ? []
      : [
          row(
            "approve",
            "Approval",
            approve === "settings" ? "as settings say" : approve,
            APPROVALS,
            "Which calls of its tools ask you?",
          ),
        ]),
    row(
      "toolPrefix",
      "Tool names",
      ownPrefix ? toolPrefix : `${toolPrefix} (settings)`,
      PREFIXES,
      "How are its tools named?",
    ),
  ];
}

/** What can be done in any state. Its dialog asks before it removes something. */
const always = (server: string): MenuRow[] => [
  {
    key: "doctor",
    label: "Doctor",
    value: "what can be wrong",
    does: { view: { name: "doctor", server, top: 0 } },
  },
  { key: "remove", label: "Remove", does: { effect: { type: "remove", server } } },
];

export function menuOf(status: ServerStatus, details: ServerDetails | undefined): MenuRow[] {
  const { name: server, state, toolsKnown, toolCount } = status;
  const enable = (project: boolean): { effect: Effect } => ({
    effect: { type: "enable", server, enabled: true, project },
  });
  if (state === "disabled") {
    return [
      { key: "enable", label: "Enable", value: "in the file that disables it", does: enable(false) },
      { key: "enable-project", label: "Enable in this project", does: enable(true) },
      ...always(server),
    ];
  }
  return [
    ...(toolsKnown
      ? [
          {
            key: "tools",
            label: "Tools",
            value: (details?.tools.names.length ?? toolCount).toLocaleString("en"),
            does: { view: { name: "tools" as const, server, list: FIRST } },
          },
        ]
      : []),
    { key: "log", label: "Log", does: { view: { name: "log", server, top: undefined } } },
    {
      key: "reconnect",
      label: state === "connected" ? "Reconnect" : "Connect",
      does: { effect: { type: "reconnect", server } },
    },
    ...signIn(status),
    ...(details ? settings(server, details) : []),
    { key: "disable", label: "Disable", value: "everywhere", does: disable(server, false) },
    { key: "disable-project", label: "Disable in this project", does: disable(server, true) },
    ...always(server),
  ];
}

export const statusOf = (world: Pick<World, "servers">, server: string): ServerStatus | undefined =>
  world.servers.find(({ name }) => name === server);

export function onServerKey(
  state: State,
  { server, list }: { server: string; list: ListState },
  key: Key,
  { world, page }: { world: World; page: number },
): Step {
  const status = statusOf(world, server);
  const rows = status ? menuOf(status, world.details.get(server)) : [];
  if (isMove(key)) {
    return { state: withView(state, { name: "server", server, list: moveIn(list, rows, key, { page }) }) };
  }
  if (key === "escape") return back(state);
  const row = key === "enter" ? rows[chosenAt(list, rows)] : undefined;
  if (!row) return { state };
  return "view" in row.does ? { state: push(state, row.does.view) } : { state, effect: row.does.effect };
}
