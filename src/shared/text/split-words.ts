/** A line as the words that a shell makes of it. Pure. */

/** A backslash before any other character is a part of the word, so that Windows paths need no quotes. */
const ESCAPABLE = /[\s"'\\]/;

/**
 * Divides a line into words as a shell does: blanks separate, quotes hold together, a backslash takes a blank, a quote
 * or a backslash as it is. Nothing is filled in: `$HOME` and `*` stay as they are written.
 */
export function splitWords(line: string): { words: string[] } | { problem: string } {
  const words: string[] = [];
  /** Undefined between words, since `""` is a word too. */
  let word: string | undefined;
  let quote: "'" | '"' | undefined;
  for (let at = 0; at < line.length; at++) {
    const char = line[at] as string;
    const next = line[at + 1];
    const escapes =
      quote === '"' ? next === '"' || next === "\\" : next !== undefined && ESCAPABLE.test(next);
    if (char === "\\" && quote !== "'" && escapes) {
      word = (word ?? "") + next;
      at++;
    } else if (quote !== undefined) {
      if (char === quote) quote = undefined;
      else word += char;
    } else if (char === "'" || char === '"') {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (quote !== undefined) return { problem: `The quote ${quote} is not closed.` };
  if (word !== undefined) words.push(word);
  return { words };
}
