/** What can be done about one server: the rows of its menu, and which question comes first. Pure. */
import { interruptText } from "../../../report/hub.ts";
import { lacksKey } from "../../../report/status.ts";
import type { ServerDetails, ServerKey } from "../../../shared/protocol/person.ts";
import type { ServerStatus } from "../../../shared/protocol/session.ts";
import { counted, grouped } from "../../../shared/text/amounts.ts";
import { FIRST, type Row } from "../../screen/list.ts";
import type { ChoiceView, Effect, View, World } from "./state.ts";

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
export const confirm = (title: string, text: string, label: string, effect: Effect): ChoiceView => ({
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
  if (transport === "stdio" || transport === "socket") return [];
  const isSignedIn = status.signIn?.state === "signed-in" && !status.signIn.byItself;
  const label = lacksKey(status) ? "Say where its key is" : isSignedIn ? "Sign in again" : "Sign in";
  const through = status.signIn?.state === "signed-in" ? status.signIn.through : undefined;
  const all = through === undefined ? "" : ` So are those of all servers that you use through ${through}.`;
  const text = `The tokens are revoked where that is possible, and forgotten.${all}`;
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
    text: "Ask before its tools run?",
    values: {
      never: "never",
      destructive: "unless the server calls the tool read-only",
      always: "always",
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

/** The choice that takes the key out of the server's entry. */
const BACK = "settings";

function changeTo(key: ServerKey["key"], value: string): ServerKey {
  if (key === "shared") return { key, value: value === "on" };
  return { key, value: value === BACK ? undefined : value } as ServerKey;
}

/** What the settings say, where a server may leave a key to them. */
const presetOf = (key: ServerKey["key"], { presets }: ServerDetails): string | undefined =>
  key === "approve" || key === "toolPrefix" ? presets[key] : undefined;

function settings(server: string, details: ServerDetails): MenuRow[] {
  const { lifecycle, approve, toolPrefix, ownPrefix, shared } = details;
  const row = (key: ServerKey["key"], value: string): MenuRow => {
    const { label, text, values } = SETTINGS[key];
    const preset = presetOf(key, details);
    const choices = Object.entries(
      preset === undefined ? values : { ...values, [BACK]: `as the settings say: ${preset}` },
    );
    const options = choices.map(([to, hint]) => ({
      key: to,
      label: to,
      hint,
      effect: { type: "set" as const, server, change: changeTo(key, to) },
    }));
    const list = { ...FIRST, key: value };
    const shown = value === BACK ? `${preset} (settings)` : value;
    return menuRow(
      key,
      label,
      { name: "choice", title: `${label} of ${server}`, text, options, list },
      shown,
    );
  };
  return [
    row("lifecycle", lifecycle),
    ...(approve === "rules" ? [] : [row("approve", approve)]),
    row("toolPrefix", ownPrefix ? toolPrefix : BACK),
    ...(shared === undefined ? [] : [row("shared", shared ? "on" : "off")]),
  ];
}

/** For example `12 + 3 resources`: a resource is offered as a tool, too. */
export const withResources = (tools: number, resources: number, skills = 0): string =>
  `${grouped(tools)}${resources === 0 ? "" : ` + ${counted(resources, "resource")}`}${skills === 0 ? "" : ` + ${counted(skills, "skill")}`}`;

/** `details`: the tools that are hidden count as well. */
const offered = (
  { toolCount, resourceCount, skillCount = 0 }: ServerStatus,
  details: ServerDetails | undefined,
): string => {
  // A server with skills has a tool more, which takes an address.
  const made = resourceCount + (skillCount === 0 ? 0 : skillCount + 1);
  return withResources(
    Math.max(toolCount, (details?.tools.names.length ?? 0) - made),
    resourceCount,
    skillCount,
  );
};

export function menuOf(status: ServerStatus, details: ServerDetails | undefined): MenuRow[] {
  const { name: server, state, toolsKnown } = status;
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
  const turn = (on: boolean): MenuRow => {
    const word = on ? "on" : "off";
    return menuRow(word, `Switch ${word}`, { type: "switch", server, on }, "for this session");
  };
  if (status.isOff) return [turn(true), ...always];
  if (state === "disabled") {
    return [
      menuRow("enable", "Enable", enable(false), "in the file that disables it"),
      menuRow("enable-project", "Enable in this project", enable(true)),
      turn(true),
      ...always,
    ];
  }
  const here = "This project's file switches it off. It stays on in other folders.";
  const everywhere = status.isForeign
    ? "An entry of your own mcp.json switches it off; the file that defines it stays as it is."
    : "It is switched off in the file that defines it.";
  return [
    ...(toolsKnown
      ? [menuRow("tools", "Tools", { name: "tools", server, list: FIRST }, offered(status, details))]
      : []),
    menuRow("log", "Log", { name: "log", server, top: undefined }),
    reconnect(status),
    ...signIn(status),
    ...(details ? settings(server, details) : []),
    turn(false),
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

/** Where a row of the menu stands. The one that has switched the server off has become the one that switches it on. */
export function menuAt(rows: readonly Row[], key: string): number {
  const at = rows.findIndex((row) => row.key === key);
  if (at !== -1) return at;
  const isTurn = key === "on" || key === "off";
  const other = isTurn
    ? key === "on"
      ? "off"
      : "on"
    : key.startsWith("disable")
      ? key.replace("disable", "enable")
      : key.replace("enable", "disable");
  return rows.findIndex((row) => row.key === other);
}
