/**
 * Divides the words behind `add`: the options that every command has, as far as `add` has none of the same name, and
 * those that belong to the server. Behind the command of a server all words are the command's. Pure.
 */
import { optionOf } from "../../shared/setup.ts";
import { GLOBAL_OPTIONS } from "./table.ts";

/** `--no-test` is the command line's own. */
const OWN = new Map<string, boolean>([
  ...GLOBAL_OPTIONS.filter(({ name }) => name !== "cwd").flatMap(({ name, short, value }) => {
    const takesValue = value !== undefined;
    const all: [string, boolean][] = [[`--${name}`, takesValue]];
    if (short) all.push([`-${short}`, takesValue]);
    return all;
  }),
  ["--no-test", false],
]);

/** Options of `add` that take no value. */
const FLAGS = new Set(["project", "replace"]);

const isUrl = (word: string): boolean => /^https?:\/\//i.test(word);

export function divideAdd(words: readonly string[]): { own: string[]; foreign: string[] } {
  const own: string[] = [];
  const foreign: string[] = [];
  let positionals = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    const name = word.split("=", 1)[0] ?? "";
    const takesValue = OWN.get(name);
    if (word === "--") return { own, foreign: [...foreign, ...words.slice(at)] };
    if (takesValue !== undefined) {
      own.push(word);
      if (takesValue && !word.includes("=")) own.push(...words.slice(++at, at + 1));
      continue;
    }
    foreign.push(word);
    const option = optionOf(word);
    if (option !== undefined && !FLAGS.has(option) && !word.includes("=")) {
      foreign.push(...words.slice(++at, at + 1));
    } else if (!word.startsWith("-") || word === "-") positionals++;
    else continue;
    // The second one is a command, unless it is an address.
    const isCommand = option === undefined && positionals === 2 && !isUrl(word);
    if (isCommand) return { own, foreign: [...foreign, ...words.slice(at + 1)] };
  }
  return { own, foreign };
}
