/**
 * Where a person is in the panel, what a key asks the session to do, and the reading of the session that the panel shows, which
 * keys never change. Types, and the steps between views. Pure.
 */
import type {
  ProjectDecision,
  RulePlace,
  SERVERS_WORD,
  ServerDetails,
  ServerKey,
  ToolExposure,
} from "../../../shared/protocol/person.ts";
import type { ServerStatus, StatusReport } from "../../../shared/protocol/session.ts";
import type { Told } from "../../screen/frame.ts";
import { FIRST, type ListState } from "../../screen/list.ts";
import type { ToolIndex } from "./find.ts";

/** What the panel asks for beside a new screen. The component carries it out. */
export type Effect =
  | { type: "close" }
  | { type: "reconnect"; server: string }
  | { type: "enable"; server: string; enabled: boolean; project: boolean }
  /** For this session. */
  | { type: "switch"; server: string; on: boolean }
  | { type: "sign-in"; server: string }
  | { type: "sign-out"; server: string }
  | { type: "set"; server: string; change: ServerKey }
  /** `tools`: the server's own names; undefined: all of them. */
  | { type: "expose"; server: string; tools: readonly string[] | undefined; to: ToolExposure }
  /** The dialogs of `/mcp add`, `/mcp import` and `/mcp remove`. */
  | { type: "set-up"; word: "add" | "import" }
  | { type: "remove"; server: string }
  /** Calls a tool as the model would, with the values of a form. `tool`: the server's own name. */
  | { type: "try"; server: string; tool: string }
  /** Takes a decision about a project's server back. */
  | { type: "take-back"; id: string; server: string }
  /** Switches the statistics of calls on. */
  | { type: "capture" }
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
  /** What a call that was tried has answered. */
  | { name: "result"; server: string; tool: string; text: string; top: number }
  /** The filter of the list is what is searched for. */
  | { name: "search"; list: ListState }
  /** What was decided about servers of projects. */
  | { name: "decisions"; list: ListState }
  | ChoiceView;

/** A text that a person scrolls through. */
export type TextView = Extract<View, { name: "tool" | "log" | "stats" | "doctor" | "result" }>;
export type ListView = Exclude<View, TextView>;

/** The next key removes the notice, which says what the last action did. */
export interface State extends Told {
  /** The last one is shown; Escape goes back to the one before. */
  views: readonly [View, ...View[]];
}

export interface Step {
  state: State;
  effect?: Effect;
}

export const START: State = { views: [{ name: "servers", list: FIRST }], notice: undefined, busy: undefined };

export const shown = ({ views }: State): View => views.at(-1) ?? views[0];

export function withView(state: State, view: View): State {
  const [first, ...rest] = state.views;
  return { ...state, views: rest.length === 0 ? [view] : [first, ...rest.slice(0, -1), view] };
}

export function push(state: State, view: View): State {
  const from = shown(state);
  const left = "list" in from ? withView(state, { ...from, list: { ...from.list, opened: true } }) : state;
  return { ...left, views: [...left.views, view] };
}

/** The state without the shown view; undefined if it was the first one. */
export function popped(state: State): State | undefined {
  const [first, ...rest] = state.views;
  return rest.length === 0 ? undefined : { ...state, views: [first, ...rest.slice(0, -1)] };
}

/** Estimated tokens of a server's tools as the model reads them: name, description and schema. */
export interface Cost {
  /** Of the tools that are declared to the model now. */
  declared: number;
  /** Of all its tools, as if each were declared. */
  all: number;
  declaredTools: number;
  /** False while tools are still being counted. */
  isWhole: boolean;
}

/** One tool of a server, hidden ones too. */
export interface ToolRow {
  /** The server's own name of it. */
  key: string;
  /** Name in Pi; undefined for a hidden tool, which the catalog does not hold. */
  name: string | undefined;
  description: string;
  exposure: ToolExposure;
  /** The rule that decides; undefined: none. */
  place: RulePlace | undefined;
  /** What decides in place of a rule, if the server's word does. */
  serversWord?: keyof typeof SERVERS_WORD | undefined;
  /** What a filter is compared with, in small letters. */
  text: string;
}

/** The tools of one server. A change makes another object, so what is worked out of one can be kept beside it. */
export interface ToolList {
  rows: readonly ToolRow[];
  /** Position by key. */
  at: ReadonlyMap<string, number>;
}

export interface Hit {
  /** Name in Pi. */
  key: string;
  server: string;
  /** The server's own name of it. */
  tool: string;
  score: number;
  description: string;
}

/** `key`: its id. */
export type DecisionRow = ProjectDecision & { key: string };

export interface Tried {
  query: string;
  hits: readonly Hit[];
  likely: number;
  tookMs: number;
  /** Number of tools that were ranked. */
  count: number;
}

export interface World extends Omit<StatusReport, "servers"> {
  servers: readonly ServerStatus[];
  /** By the server's name. Absent: its tools are not known. */
  costs: ReadonlyMap<string, Cost>;
  /** By the server's name, once they have been told. */
  details: ReadonlyMap<string, ServerDetails>;
  /** By the server's name, once they are known. */
  tools: ReadonlyMap<string, ToolList>;
  /** Undefined until they are read. */
  decisions: readonly DecisionRow[] | undefined;
  /** The tools of all servers that ToolSearch can find. */
  index: ToolIndex;
  /** Names in Pi of the tools that the model has now. */
  loaded: ReadonlySet<string>;
  /** Estimated tokens of a tool by its name in Pi; undefined while it is not counted. */
  tokensOf: (name: string) => number | undefined;
  /** What the person has just chosen for tools, by server and tool, until it is in effect. */
  chosen: ReadonlyMap<string, ToolExposure>;
  /** The schema of the tool that is looked at, as its server declares it. */
  schema: { server: string; tool: string; text: string } | undefined;
  log: { server: string; lines: readonly string[] } | undefined;
  /** The statistics of calls, or the doctor's findings about a server, for a width. `off`: none are captured. */
  report: { of: string; text: (columns: number) => string; off?: boolean } | undefined;
  tried: Tried | undefined;
  /** The project's files that Pi does not read, because it does not trust the folder. */
  unread: readonly string[];
  /** The home folder, which is shown as `~`. */
  home: string;
  /** Milliseconds since the epoch. */
  now: number;
}

export const chosenKey = (server: string, tool: string): string => `${server}\0${tool}`;

/** What becomes of the tool, as the person has chosen or as the configuration says. */
export const exposureNow = (world: Pick<World, "chosen">, server: string, row: ToolRow): ToolExposure =>
  world.chosen.get(chosenKey(server, row.key)) ?? row.exposure;
