/**
 * The panel's picture. Owns: the lines of each view, at most as wide as the screen, and how many rows of a list are seen.
 * Must not: change anything or know Pi's terminal. Called by: panel/component.ts. To draw another view: a file of its own
 * that makes a `Picture`, and a case below. Pure.
 */
import { type State, shown, type World } from "../model/model.ts";
import { choicePicture } from "./choice.ts";
import { type Area, framed, type Picture, rowsIn } from "./frame.ts";
import { serverPicture } from "./server.ts";
import { serversPicture } from "./servers.ts";

export type { Area } from "./frame.ts";
export type { Colour, Theme } from "./line.ts";

function pictureOf(state: State, world: World, area: Area): Picture {
  const view = shown(state);
  switch (view.name) {
    case "servers":
      return serversPicture(view.list, world, area);
    case "server":
      return serverPicture(view, world, area);
    case "choice":
      return choicePicture(view, area);
  }
}

export const draw = (state: State, world: World, area: Area): string[] =>
  framed(pictureOf(state, world, area), state, world.home, area);

/** Rows of the shown list that are seen at once: a page. */
export const pageOf = (state: State, world: World, area: Area): number =>
  Math.max(1, rowsIn(pictureOf(state, world, area), area.height) - 1);
