/**
 * Owns the four actions of tools, recognised by verbs: read, create, update, delete. A tool that creates does not serve
 * a query that asks to delete, however many words they share. build/ranked.ts asks for the action of a tool's name;
 * query.ts for the actions of a query.
 */
import { stem } from "../words/stem.ts";

export const READ = 1;
export const CREATE = 2;
export const UPDATE = 4;
export const DELETE = 8;

const verbs: readonly (readonly [action: number, verbs: string])[] = [
  [
    READ,
    "get list show find search read fetch view describe query check count lookup retrieve browse display see",
  ],
  [READ, "what which who how many inspect explain summarize look tell is are analyze compare"],
  [
    CREATE,
    "create add make new insert generate build write upload post publish send register define draft compose",
  ],
  [CREATE, "put upsert import provision"],
  [UPDATE, "update edit modify set change rename replace patch adjust move assign enable disable upsert put"],
  [UPDATE, "configure write mark apply"],
  [DELETE, "delete remove drop clear purge erase destroy uninstall cancel discard revoke"],
];
const actionOf = new Map<string, number>();
for (const [action, list] of verbs)
  for (const verb of list.split(" ")) actionOf.set(stem(verb), (actionOf.get(stem(verb)) ?? 0) | action);

/** Actions that the terms name, as bits; 0 for none. */
export function actions(terms: Iterable<string>): number {
  let found = 0;
  for (const term of terms) found |= actionOf.get(term) ?? 0;
  return found;
}
