/** The view of one server: what can be done with it, as a menu. Pure. */
import type { ServerStatus } from "../../../shared/protocol/status.ts";
import type { Key } from "./keys.ts";
import { chosenAt, FIRST, isMove, type ListState, moveIn } from "./list.ts";
import {
  back,
  type ChoiceView,
  type Effect,
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

function signIn({ name, state, signIn: status, transport }: ServerStatus): MenuRow[] {
  if (transport === "stdio") return [];
  const rows: MenuRow[] = [];
  const isSignedIn = status?.state === "signed-in";
  if (status || state === "needs-auth") {
    const label = isSignedIn ? "Sign in again" : "Sign in";
    rows.push({ key: "sign-in", label, does: { effect: { type: "sign-in", server: name } } });
  }
  if (isSignedIn) {
    const text = "The tokens are revoked where that is possible, and forgotten.";
    const does = confirm(`Sign out of ${name}?`, text, "Sign out", { type: "sign-out", server: name });
    rows.push({ key: "sign-out", label: "Sign out", does });
  }
  return rows;
}

export function menuOf(status: ServerStatus): MenuRow[] {
  const { name: server, state } = status;
  const enable = (project: boolean): { effect: Effect } => ({
    effect: { type: "enable", server, enabled: true, project },
  });
  if (state === "disabled") {
    return [
      { key: "enable", label: "Enable", value: "in the file that disables it", does: enable(false) },
      { key: "enable-project", label: "Enable in this project", does: enable(true) },
    ];
  }
  return [
    {
      key: "reconnect",
      label: state === "connected" ? "Reconnect" : "Connect",
      does: { effect: { type: "reconnect", server } },
    },
    ...signIn(status),
    { key: "disable", label: "Disable", value: "everywhere", does: disable(server, false) },
    { key: "disable-project", label: "Disable in this project", does: disable(server, true) },
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
  const rows = status ? menuOf(status) : [];
  if (isMove(key)) {
    return { state: withView(state, { name: "server", server, list: moveIn(list, rows, key, page) }) };
  }
  if (key === "escape") return back(state);
  const row = key === "enter" ? rows[chosenAt(list, rows)] : undefined;
  if (!row) return { state };
  return "view" in row.does ? { state: push(state, row.does.view) } : { state, effect: row.does.effect };
}
