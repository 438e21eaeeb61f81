/** A question of the panel: one of a few answers, or Escape for none. Pure. */
import type { Key } from "./keys.ts";
import { chosenAt, isMove, moveIn } from "./list.ts";
import { back, type ChoiceView, popped, type State, type Step, withView } from "./state.ts";

export function onChoiceKey(state: State, view: ChoiceView, key: Key, { page }: { page: number }): Step {
  const { options, list } = view;
  if (isMove(key)) return { state: withView(state, { ...view, list: moveIn(list, options, key, { page }) }) };
  if (key === "escape") return back(state);
  const option = key === "enter" ? options[chosenAt(list, options)] : undefined;
  if (!option) return { state };
  const before = popped(state) ?? state;
  return option.effect ? { state: before, effect: option.effect } : { state: before };
}
