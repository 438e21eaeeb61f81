/**
 * The panel without a screen. Owns: the views, what each key does in each of them, and which effect it asks for. Must not:
 * draw, wait or know Pi. Called by: panel/component.ts and panel/draw. To add a view: its type in state.ts, its keys in a
 * file of its own, a case below, its picture in panel/draw. Pure.
 */
import { onChoiceKey } from "./choice.ts";
import type { Key } from "./keys.ts";
import { onServerKey, statusOf } from "./server.ts";
import { onServersKey } from "./servers.ts";
import { popped, type State, type Step, shown, type View } from "./state.ts";
import { onSearchKey, onTextKey } from "./text.ts";
import { onToolsKey } from "./tools.ts";
import type { World } from "./world.ts";

export { type Binding, type Key, keyOf } from "./keys.ts";
export { chosenAt, type ListState, windowFrom } from "./list.ts";
export { type MenuRow, menuOf, statusOf } from "./server.ts";
export { type ServersRow, serversRows } from "./servers.ts";
export { type ChoiceView, type Effect, type Notice, START, type State, shown, type View } from "./state.ts";
export { reportKey } from "./text.ts";
export { allWords, EXPOSURE_WORDS, filteredTools, isTool, type ToolsRow } from "./tools.ts";
export {
  type Cost,
  chosenKey,
  exposureNow,
  type Hit,
  type ToolList,
  type ToolRow,
  type Tried,
  type World,
} from "./world.ts";

/**
 * What a key needs to know beside the state. `page`: rows of the list, or lines of the text, that are seen at once;
 * `lines`: of the whole text.
 */
export interface Surroundings {
  world: World;
  page: number;
  lines: number;
}

export function onKey(before: State, key: Key, around: Surroundings): Step {
  const state = { ...before, notice: undefined };
  const view = shown(state);
  switch (view.name) {
    case "servers":
      return onServersKey(state, view.list, key, around);
    case "server":
      return onServerKey(state, view, key, around);
    case "choice":
      return onChoiceKey(state, view, key, around);
    case "tools":
      return onToolsKey(state, view, key, around);
    case "tool":
    case "log":
    case "stats":
    case "doctor":
      return onTextKey(state, view, key, around);
    case "search":
      return onSearchKey(state, view, key, around);
  }
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
