/** Where a person is in the panel, and what a key asks the session to do. Types, and the steps between views. Pure. */
import type { ServerKey, ToolExposure } from "../../../shared/protocol/panel.ts";
import { FIRST, type ListState } from "./list.ts";

/** What the panel asks for beside a new screen. The component carries it out. */
export type Effect =
  | { type: "close" }
  | { type: "reconnect"; server: string }
  | { type: "enable"; server: string; enabled: boolean; project: boolean }
  | { type: "sign-in"; server: string }
  | { type: "sign-out"; server: string }
  | { type: "set"; server: string; change: ServerKey }
  /** `tools`: the server's own names; undefined: all of them. */
  | { type: "expose"; server: string; tools: readonly string[] | undefined; to: ToolExposure }
  /** The dialogs of `/mcp add`, `/mcp import` and `/mcp remove`. */
  | { type: "set-up"; word: "add" | "import" }
  | { type: "remove"; server: string }
  /** Asks the questions of consent again. */
  | { type: "trust" }
  | { type: "edit"; project: boolean };

export interface Option {
  key: string;
  label: string;
  hint?: string;
  /** Absent: the option only goes back. */
  effect?: Effect;
}

/** A question of the panel with a few answers. Each answer goes back to the view before. */
export interface ChoiceView {
  name: "choice";
  title: string;
  text: string;
  options: readonly Option[];
  list: ListState;
}

export type View =
  | { name: "servers"; list: ListState }
  | { name: "server"; server: string; list: ListState }
  | { name: "tools"; server: string; list: ListState }
  /** `top`: the first line that is seen. */
  | { name: "tool"; server: string; tool: string; top: number }
  /** Without `top` the end is seen, also when the log grows. */
  | { name: "log"; server: string; top: number | undefined }
  | { name: "stats"; top: number }
  | { name: "doctor"; server: string; top: number }
  | { name: "search"; query: string; list: ListState }
  | ChoiceView;

export interface Notice {
  text: string;
  level: "info" | "error";
}

export interface State {
  /** The last one is shown; Escape goes back to the one before. */
  views: readonly [View, ...View[]];
  /** What the last action did. The next key removes it. */
  notice: Notice | undefined;
  /** What is under way, for example `Reconnecting github`. */
  busy: string | undefined;
}

export interface Step {
  state: State;
  effect?: Effect;
}

export const START: State = { views: [{ name: "servers", list: FIRST }], notice: undefined, busy: undefined };

export const shown = ({ views }: State): View => views.at(-1) ?? views[0];

/** The state with the shown view replaced. */
export function withView(state: State, view: View): State {
  const [first, ...rest] = state.views;
  return { ...state, views: rest.length === 0 ? [view] : [first, ...rest.slice(0, -1), view] };
}

export const push = (state: State, view: View): State => ({ ...state, views: [...state.views, view] });

/** The state without the shown view; undefined if it was the first one. */
export function popped(state: State): State | undefined {
  const [first, ...rest] = state.views;
  return rest.length === 0 ? undefined : { ...state, views: [first, ...rest.slice(0, -1)] };
}

export const back = (state: State): Step => {
  const before = popped(state);
  return before ? { state: before } : { state, effect: { type: "close" } };
};
