/** What was decided about servers of projects and about skills, and taking a decision back. Pure. */
import { hasWords, wordsOf } from "./find.ts";
import { confirm } from "./menu.ts";
import type { ChoiceView, DecisionRow, World } from "./state.ts";

/** Those of this folder come first. */
export function decisionsIn({ decisions = [] }: Pick<World, "decisions">, filter: string): DecisionRow[] {
  const words = wordsOf(filter);
  const fitting = decisions.filter(({ server, file, skill, decision }) =>
    hasWords(
      `${server} ${file} ${skill === undefined ? "" : `skill ${skill}`} ${decision}`.toLowerCase(),
      words,
    ),
  );
  return [...fitting.filter(({ here }) => here), ...fitting.filter(({ here }) => !here)];
}

export function takeBack({ key, server, skill, decision, here }: DecisionRow): ChoiceView {
  const effect = { type: "take-back", id: key, server } as const;
  if (skill !== undefined)
    return confirm(
      `Take back that the skill ${skill} of ${server} is always loaded?`,
      "You are asked again before it is loaded.",
      "Take it back",
      effect,
    );
  const stops = decision === "allowed" ? "If it runs here it stops. " : "";
  const where = here ? "" : "It was decided in another folder. ";
  return confirm(
    `Take back that ${server} was ${decision}?`,
    `${where}${stops}You are asked again before it may run.`,
    "Take it back",
    effect,
  );
}
