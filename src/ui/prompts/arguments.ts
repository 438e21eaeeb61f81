/** Reads the text behind a prompt's command: `name=value`, quotes, and values in the order of the prompt. Pure. */
import type { SnapshotPrompt } from "../../shared/snapshot/contract.ts";

export interface Word {
  /** Without quotes. */
  text: string;
  /** Where the word starts in the text. */
  at: number;
  /** The word reaches the end of the text: a person may still be typing it. */
  isOpen: boolean;
}

const SPACE = /\s/;

/** The words of a text. A quote at the start of a word or of a value holds spaces together; `\"` stands for itself. */
export function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  for (let at = 0; at < text.length; ) {
    if (SPACE.test(text[at] ?? "")) {
      at++;
      continue;
    }
    const start = at;
    let word = "";
    let quote = "";
    for (; at < text.length; at++) {
      const char = text[at] ?? "";
      if (quote === "" && SPACE.test(char)) break;
      if (quote === "" && /["']/.test(char) && (word === "" || word.endsWith("="))) quote = char;
      else if (char === quote) quote = "";
      else if (char === "\\" && quote !== "" && [quote, "\\"].includes(text[at + 1] ?? ""))
        word += text[++at];
      else word += char;
    }
    words.push({ text: word, at: start, isOpen: at >= text.length });
  }
  return words;
}

/** The argument that a word names, as in `name=value`; undefined if the word is a value. */
export function namedIn(
  text: string,
  { arguments: args = [] }: SnapshotPrompt,
): [string, string] | undefined {
  const name = args.find((argument) => text.startsWith(`${argument.name}=`))?.name;
  return name === undefined ? undefined : [name, text.slice(name.length + 1)];
}

/** The values by argument. Values without a name fill the arguments that no name fills; the last one takes the rest. */
export function readArguments(typed: string, prompt: SnapshotPrompt): Record<string, string> {
  const values = new Map<string, string>();
  const loose: string[] = [];
  for (const { text } of wordsOf(typed)) {
    const named = namedIn(text, prompt);
    if (named) values.set(...named);
    else loose.push(text);
  }
  const open = (prompt.arguments ?? []).filter(({ name }) => !values.has(name));
  for (const [at, { name }] of open.entries()) {
    const own = at === open.length - 1 ? loose.slice(at) : loose.slice(at, at + 1);
    if (own.length > 0) values.set(name, own.join(" "));
  }
  return Object.fromEntries(values);
}

/** For example `topic=<what> [style=<how>]`. */
export const usageOf = ({ arguments: args = [] }: SnapshotPrompt): string =>
  args.map(({ name, required }) => (required ? `${name}=…` : `[${name}=…]`)).join(" ");
