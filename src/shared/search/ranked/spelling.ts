/**
 * Guesses for a word that no tool has: words that it begins, words one typing slip away.
 * Other words are never guessed for, so a word that tools have keeps its own meaning. src/shared/search/README.md says
 * what the guesses are worth. Called by query.ts.
 */
import type { ToolIndex } from "./index-format.ts";
import { prefixRange } from "./lookup.ts";
import type { Weights } from "./weights.ts";

export type Guess = { readonly term: number; readonly weight: number };

const minPrefixLength = 3;
const maxPrefixTerms = 8;
const minSlipLength = 5;

export function guesses(index: ToolIndex, word: string, weights: Weights): Guess[] {
  if (word.length < minPrefixLength) return [];
  const { first, end } = prefixRange(index, word);
  if (first < end) {
    return Array.from({ length: Math.min(end - first, maxPrefixTerms) }, (_, at) => ({
      term: first + at,
      weight: weights.prefix,
    }));
  }
  return word.length < minSlipLength || !/^[a-z]+$/.test(word) ? [] : slips(index, word, weights.slip);
}

/** Terms one slip away with the same first letter, which is nearly always right: a few hundred comparisons. */
function slips(index: ToolIndex, word: string, weight: number): Guess[] {
  const found: Guess[] = [];
  const { first, end } = prefixRange(index, word[0]!);
  for (let term = first; term < end; term++)
    if (isOneSlipAway(index, term, word)) found.push({ term, weight });
  return found;
}

/** Whether one letter is left out, added or replaced, or two neighbours are swapped. */
function isOneSlipAway({ termStart, termChars }: ToolIndex, term: number, word: string): boolean {
  const start = termStart[term]!;
  const length = termStart[term + 1]! - start;
  if (Math.abs(length - word.length) > 1) return false;
  const shorter = Math.min(length, word.length);
  let head = 0;
  while (head < shorter && termChars[start + head] === word.charCodeAt(head)) head++;
  let tail = 0;
  while (
    tail < shorter - head &&
    termChars[start + length - 1 - tail] === word.charCodeAt(word.length - 1 - tail)
  )
    tail++;
  const differing = Math.max(length, word.length) - head - tail;
  if (differing <= 1) return true;
  const swapped =
    termChars[start + head] === word.charCodeAt(head + 1) &&
    termChars[start + head + 1] === word.charCodeAt(head);
  return differing === 2 && length === word.length && swapped;
}
