/**
 * Turns a query into terms of one index, each with the terms that may stand for it, and finds the words that no tool
 * has. Called by ranked.ts for every query, so it only looks up: nothing here grows with the catalog.
 */

import { literalTerms } from "../words/literals.ts";
import { stem } from "../words/stem.ts";
import { isStopWord } from "../words/stop-words.ts";
import { type Token, tokenize } from "../words/tokens.ts";
import { actions } from "./actions.ts";
import { type ToolIndex, WEIGHT_BITS } from "./index-format.ts";
import { findTerm, hasTools } from "./lookup.ts";
import { guesses } from "./spelling.ts";
import type { Weights } from "./weights.ts";

export type Variant = { readonly term: number; readonly weight: number };
export type QueryTerm = {
  /** Terms of the index that count as this word, closest first, each with its share of an exact match. */
  readonly variants: readonly Variant[];
  readonly weight: number;
  /** Worth of a tool's covering this word. */
  readonly idf: number;
};
export type QueryTerms = {
  readonly terms: readonly QueryTerm[];
  /** Words that no tool has in any form, in lower case, without values and numbers. */
  readonly unmatched: readonly string[];
  /** Actions that the query asks for, as bits (actions.ts). */
  readonly action: number;
};

const maxQueryCharacters = 4_000;
const maxTokens = 1_000;
/** Further words are ignored: no request for one capability is that long. */
const maxTerms = 64;
/** Approximate IDF of the rarest term: the logarithm of the catalog's size. */
const largestIdf = ({ toolCount }: ToolIndex): number => Math.log(1 + toolCount);
const weightMask = 2 ** WEIGHT_BITS - 1;

export function queryTerms(index: ToolIndex, query: string, weights: Weights): QueryTerms {
  const text = query.slice(0, maxQueryCharacters);
  const tokens = tokenize(text, maxTokens);
  const joined = tokens.filter(({ kind }) => kind === "joined");
  const words = meaningfulWords(tokens);
  const literal = literalTerms(text);
  const times = new Map<string, number>();
  for (const { term } of words) times.set(term, (times.get(term) ?? 0) + 1);
  const terms: QueryTerm[] = [];
  const unmatched = new Set<string>();
  const done = new Set<string>();
  for (let at = 0; at < words.length && done.size < maxTerms; at++) {
    const word = words[at]!;
    if (done.has(word.term)) continue;
    done.add(word.term);
    const variants = variantsOf(
      index,
      { word, before: words[at - 1], after: words[at + 1], joined },
      weights,
    );
    if (variants.length === 0) {
      if (!isStopWord(word.written) && !literal.has(word.term) && !/^\d+$/.test(word.written))
        unmatched.add(word.written);
      continue;
    }
    const idf = Math.max(...variants.map(({ term, weight }) => index.termIdf[term]! * weight));
    const weight =
      (literal.has(word.term) ? weights.literal : 1) * (1 + weights.repeat * Math.log(times.get(word.term)!));
    terms.push({ variants, weight, idf });
  }
  return { terms, unmatched: [...unmatched], action: actions(tokens.map(({ term }) => term)) };
}

/** The words without stop words. A query of nothing but stop words ("who am I") keeps them. */
function meaningfulWords(tokens: readonly Token[]): Token[] {
  const parts = tokens.filter(({ kind }) => kind === "part");
  const meaningful = parts.filter(({ term, written }) => !isStopWord(written) && !isStopWord(term));
  return meaningful.length > 0 ? meaningful : parts;
}

type Context = {
  readonly word: Token;
  readonly before: Token | undefined;
  readonly after: Token | undefined;
  readonly joined: readonly Token[];
};

function variantsOf(index: ToolIndex, { word, before, after, joined }: Context, weights: Weights): Variant[] {
  const found = new Map<number, number>();
  const add = (term: number, weight: number): void => {
    if (hasTools(index, term)) found.set(term, Math.max(found.get(term) ?? 0, weight));
  };
  // "MySQL" is searched as mysql. Its parts count less, or every other SQL tool would match as well.
  let exact = 1;
  for (const { term, written } of joined) {
    if (!written.startsWith(word.written) && !written.endsWith(word.written)) continue;
    const whole = findTerm(index, term);
    if (!hasTools(index, whole)) continue;
    add(whole, 1);
    exact = weights.partOfJoined;
  }
  const id = findTerm(index, word.term);
  if (id >= 0) {
    add(id, exact);
    for (let at = index.variantStart[id]!; at < index.variantStart[id + 1]!; at++) {
      const other = index.variants[at]! >>> WEIGHT_BITS;
      const share = ((index.variants[at]! & weightMask) / weightMask) * exact;
      if (share * index.termIdf[other]! >= weights.variantFloor * largestIdf(index)) add(other, share);
    }
  }
  // "data set" finds "dataset", and "pull request" finds "pullrequest": each word also counts as the joined one.
  if (before !== undefined) add(findTerm(index, stem(before.written + word.written)), weights.joined);
  if (after !== undefined) add(findTerm(index, stem(word.written + after.written)), weights.joined);
  if (found.size === 0) for (const { term, weight } of guesses(index, word.term, weights)) add(term, weight);
  return [...found].map(([term, weight]) => ({ term, weight })).sort((a, b) => b.weight - a.weight);
}
