/**
 * The panel's picture. Owns: the lines of each view, at most as wide as the screen, and how many rows of a list are seen.
 * Must not: change anything or know Pi's terminal. To draw another view: a function that makes a `Picture`, and a case below.
 * Pure.
 */

import { type Area, columnRows, framed, type Picture, rowsIn } from "../../screen/frame.ts";
import { menuIn } from "../model/menu.ts";
import { type State, shown, type World } from "../model/state.ts";
import { decisionsPicture } from "./decisions.ts";
import { choicePicture, serverPicture, serversPicture } from "./servers.ts";
import { linesOf, searchPicture, textPicture, toolsPicture } from "./tools.ts";

function pictureOf(state: State, world: World, area: Area): Picture {
  const view = shown(state);
  if ("top" in view) return textPicture(view, world, area);
  switch (view.name) {
    case "servers":
      return serversPicture(view, world, area);
    case "server":
      return serverPicture(view, world, area);
    case "choice":
      return choicePicture(view, area);
    case "tools":
      return toolsPicture(view, world, area);
    case "decisions":
      return decisionsPicture(view, world, area);
    case "search":
      return searchPicture(view, world, area);
  }
}

export const draw = (state: State, world: World, area: Area): string[] =>
  framed(pictureOf(state, world, area), state, world.home, area);

/**
 * Rows of the shown list, or lines of the shown text, that are seen at once; the lines of the whole text; and the rows of the
 * first of two columns, if there are two.
 */
export function sizeOf(
  state: State,
  world: World,
  area: Area,
): { page: number; lines: number; column: number | undefined } {
  const view = shown(state);
  const rows = rowsIn(pictureOf(state, world, area), area.height);
  const menu = view.name === "server" ? menuIn(world, view.server).length : 0;
  const column = columnRows(menu, rows, area.width);
  return {
    page: column === undefined ? Math.max(1, rows - 1) : menu,
    lines: "top" in view ? linesOf(view, world, area.width).length : 0,
    column,
  };
}
