/** The views that only show a text: a tool with its schema, a log, statistics. And the view that tries a search. Pure. */
import type { Key } from "./keys.ts";
import { FIRST, isMove, moveIn, scrolled, typed } from "./list.ts";
import { back, push, type State, type Step, type View, withView } from "./state.ts";
import type { World } from "./world.ts";

type TextView = Extract<View, { name: "tool" | "log" | "stats" | "doctor" }>;

/** Names the report of a view in the reading of the session. */
export const reportKey = (view: Extract<View, { name: "stats" | "doctor" }>): string =>
  view.name === "stats" ? "stats" : `doctor ${view.server}`;

/** `lines`: of the whole text; `page`: of those that are seen. */
export function onTextKey(
  state: State,
  view: TextView,
  key: Key,
  { lines, page }: { lines: number; page: number },
): Step {
  if (key === "escape") return back(state);
  if (!isMove(key)) return { state };
  const last = Math.max(0, lines - page);
  const top = scrolled(Math.min(view.top ?? last, last), lines, key, page);
  // At its end a log is followed again.
  if (view.name === "log")
    return { state: withView(state, { ...view, top: top === last ? undefined : top }) };
  return { state: withView(state, { ...view, top }) };
}

export function onSearchKey(
  state: State,
  view: Extract<View, { name: "search" }>,
  key: Key,
  { world, page }: { world: World; page: number },
): Step {
  const { query, list } = view;
  const hits = world.tried?.hits ?? [];
  if (isMove(key)) return { state: withView(state, { ...view, list: moveIn(list, hits, key, { page }) }) };
  if (key === "enter") {
    const hit = hits.find(({ key: name }) => name === list.key) ?? hits[0];
    if (!hit) return { state };
    const { server } = hit;
    return { state: push(state, { name: "tools", server, list: { ...FIRST, key: hit.tool } }) };
  }
  if (key === "escape" && query === "") return back(state);
  const next = key === "escape" ? "" : typed(query, key === "space" ? { text: " " } : key);
  return {
    state: next === undefined ? state : withView(state, { name: "search", query: next, list: FIRST }),
  };
}
