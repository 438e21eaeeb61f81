/**
 * Turns mistakes of a document into problems of its file: with the position, and the key in a length that can be
 * shown. Pure.
 */
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import type { Mistake } from "../entry/mistakes.ts";
import type { ConfigDocument } from "./jsonc.ts";

/** Characters of each key in a path: a long key of a hostile file would fill the screen and the log. */
const KEY_CHARS = 100;

export const shownKey = (path: readonly string[]): string =>
  path.map((key) => (key.length > KEY_CHARS ? `${key.slice(0, KEY_CHARS)}...` : key)).join(".");

/** Use it in place of `push(...more)`: a call stack holds only some 100,000 arguments. */
export function addAll<T>(list: T[], more: readonly T[]): void {
  for (const one of more) list.push(one);
}

/** Mistakes below the path `base` as problems of a file. */
export const toProblems = (
  document: ConfigDocument,
  file: string,
  base: readonly string[],
  mistakes: readonly Mistake[],
): ConfigProblem[] =>
  mistakes.map(({ severity, path, message, remedy }) => {
    const whole = [...base, ...path];
    const key = whole.length === 0 ? {} : { key: shownKey(whole) };
    return { severity, file, ...document.at(whole), ...key, message, remedy };
  });
