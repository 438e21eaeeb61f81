/**
 * The panel without a screen. Owns: what each view lists, what each key does in it, and which effect it asks for. Must not:
 * draw, wait or know Pi. To add a view: its type in state.ts, its rows in `listOf`, its picture in panel/draw. Pure.
 */

import {
  chosenAt,
  FIRST,
  isGone,
  isLeft,
  isMove,
  type Key,
  moveIn,
  type Row,
  scrolled,
  typed,
} from "../../screen/list.ts";
import { decisionsIn, takeBack } from "./decisions.ts";
import { menuAt, menuIn, statusOf } from "./menu.ts";
import { doesOf, menuRowOf, otherEnd, serversRows } from "./servers.ts";
import {
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
import { enterTools, filteredTools, toggled, triedIn } from "./tools.ts";

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
      return { rows, find: (key) => menuAt(rows, key), enter: (state, at) => carryOn(state, rows[at]?.does) };
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
    case "decisions": {
      const rows = decisionsIn(world, view.list.filter);
      return { rows, enter: (state, at) => carryOn(state, rows[at] && takeBack(rows[at])) };
    }
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
function onTextKey(state: State, view: TextView, key: Key, { world, lines, page }: Surroundings): Step {
  if (key === "escape") return back(state);
  if (view.name === "tool" && (key === "enter" || key === "try")) {
    return { state, effect: { type: "try", server: view.server, tool: view.tool } };
  }
  if (view.name === "stats" && key === "enter" && world.report?.off === true) {
    return { state, effect: { type: "capture" } };
  }
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
 * `lines`: of the whole text; `column`: rows of the first of two columns, undefined for one column.
 */
interface Surroundings {
  world: World;
  page: number;
  lines: number;
  column?: number | undefined;
}

/** The position beside this one in the other column, or this one. */
function beside(at: number, key: "left" | "right", column: number, count: number): number {
  if (key === "left") return at < column ? at : at - column;
  return at < column ? Math.min(at + column, count - 1) : at;
}

/** Tab changes what the hints name: the tool's exposure, or the place in the list of servers. */
function onTab(state: State, view: ListView, at: number, world: World): Step {
  if (view.name === "tools") return carryOn(state, toggled(view, at, world));
  if (view.name !== "servers") return { state };
  const rows = serversRows(world, view.list.filter);
  const to = otherEnd(rows, at);
  return { state: withView(state, { ...view, list: { ...view.list, at: to, key: rows[to]?.key } }) };
}

/** What a key with Ctrl does to the row; undefined: nothing. */
function ofRow(view: ListView, at: number, key: Key, world: World): Effect | View | undefined {
  switch (view.name) {
    case "servers": {
      const row = serversRows(world, view.list.filter)[at];
      if (row?.kind === "server") return menuRowOf(row.status, key)?.does;
      if (key !== "try" || row?.kind !== "tool") return undefined;
      return { type: "try", server: row.tool.server, tool: row.tool.tool };
    }
    case "server": {
      const status = statusOf(world, view.server);
      return status && menuRowOf(status, key)?.does;
    }
    case "tools":
      return key === "try" ? triedIn(view, at, world) : undefined;
    case "search": {
      const hit = world.tried?.hits[at];
      return key === "try" && hit ? { type: "try", server: hit.server, tool: hit.tool } : undefined;
    }
    case "choice":
    case "decisions":
      return undefined;
  }
}

const GONE = {
  text: "What was chosen here is gone. The arrow keys choose another row.",
  level: "info",
} as const;

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
  if (key === "left" || key === "right") {
    const to = around.column === undefined ? at : beside(at, key, around.column, rows.length);
    return show({ ...list, at: to, key: rows[to]?.key });
  }
  // A row may be gone once it has acted, as "Enable" of a server. No key is meant for the one in its place before a move.
  const acts = isGone(list, rows, find) ? -1 : at;
  const row = rows[acts];
  const acting = row ? withView(state, { ...view, list: { ...list, at, key: row.key } }) : state;
  if (key === "enter") {
    if (row) return enter(acting, acts);
    return { state: at === -1 ? state : { ...state, notice: GONE } };
  }
  if (key === "tab") return onTab(state, view, acts, world);
  const does = ofRow(view, acts, key, world);
  if (does) return carryOn(acting, does);
  if (key === "escape" && isLeft(list)) return back(state);
  if (view.name === "server" || view.name === "choice") return { state };
  const filter = key === "escape" ? "" : typed(list.filter, key);
  return filter === undefined ? { state } : show({ ...FIRST, filter });
}

/**
 * The state once the person has seen it: the server that is drawn as the chosen one stays chosen when others come before
 * it, so that Enter never opens another one.
 */
export function seen(state: State, world: World): State {
  const view = shown(state);
  if (view.name !== "servers" || view.list.key !== undefined) return state;
  const [first] = serversRows(world, view.list.filter);
  if (first?.kind !== "server") return state;
  return withView(state, { ...view, list: { ...view.list, key: first.key, at: 0 } });
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
