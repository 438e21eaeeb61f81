/** Draws what was decided about servers of projects and about skills. Pure. */

import {
  type Area,
  cell,
  clean,
  filterLine,
  listLines,
  type Picture,
  paragraph,
  part,
  pointer,
  withTilde,
} from "../../screen/frame.ts";
import { chosenAt, isLeft } from "../../screen/list.ts";
import { decisionsIn } from "../model/decisions.ts";
import type { View, World } from "../model/state.ts";

const NAME_CELLS = 24;
const DECISION_CELLS = 8;
/** For example `2026-11-24`. */
const DATE_CHARS = 10;

/** The file that this package wrote may hold any number. */
const dayOf = (at: number): string =>
  Number.isFinite(at) && Math.abs(at) < 8e15 ? new Date(at).toISOString().slice(0, DATE_CHARS) : "";

export function decisionsPicture(
  { list }: Extract<View, { name: "decisions" }>,
  world: World,
  { width }: Area,
): Picture {
  const rows = decisionsIn(world, list.filter);
  const at = chosenAt(list, rows);
  const none =
    list.filter === "" ? "Nothing was decided yet about a server of a project or a skill." : "Nothing fits.";
  const chosen = rows[at];
  const folder = chosen?.here ? "Decided in this folder." : "Decided in another folder.";
  const where = chosen?.skill === undefined ? folder : "Always loaded, in each folder, until it changes.";
  return {
    title: "Decisions about servers of projects and skills",
    head: list.filter === "" ? [] : [filterLine("Filter: ", list.filter)],
    list: listLines(
      rows,
      at,
      world.decisions ? none : "Reading…",
      ({ server, file, skill, decision, decidedAt, here }, isChosen) => [
        pointer(isChosen),
        part(decision === "allowed" ? "● " : "✗ ", decision === "allowed" ? "success" : "warning"),
        part(cell(clean(server), NAME_CELLS), isChosen ? "accent" : "text"),
        " ",
        part(cell(decision, DECISION_CELLS), "muted"),
        " ",
        part(cell(dayOf(decidedAt), DATE_CHARS), "muted"),
        part(
          skill === undefined
            ? `  ${here ? "here, " : ""}${withTilde(file, world.home)}`
            : `  skill ${clean(skill)}, ${clean(file)}`,
          "dim",
        ),
      ],
    ),
    foot:
      rows.length === 0
        ? []
        : paragraph(`${where} Enter takes it back, after a question.`, width, 2, "muted"),
    hints: `↑↓ move  enter take back  type to filter  esc ${isLeft(list) ? "back" : "clear"}`,
  };
}
