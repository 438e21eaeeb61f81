/**
 * Turns a query into terms of one index, each with the terms that may stand for it, and finds the words that no tool
 * has. Called by ranked.ts for every query, so it only looks up: nothing here grows with the catalog.
 */
import { findTerm, hasTools, prefixRange, type ToolIndex, WEIGHT_BITS } from "./index-format.ts";
import type { Weights } from "./weights.ts";
import { actions, isStopWord, literalTerms, stem, type Token, tokenize } from "./words.ts";

type Variant = { readonly term: number; readonly weight: number };
export type QueryTerm = {
  /** Terms of the index that count as this word, closest first, each with its share of an exact match. */
  readonly variants: readonly Variant[];
  readonly weight: number;
  /** Worth of a tool's covering this word. */
  readonly idf: number;
};
type QueryTerms = {
  readonly terms: readonly QueryTerm[];
  /** Words that no tool has in any form, in lower case, without values and numbers. */
  readonly unmatched: readonly string[];
  /** Actions that the query asks for, as bits (words.ts). */
  readonly action: number;
};

const maxQueryCharacters = 4_000;
const maxTokens = 1_000;
/** Further words are ignored: no request for one capability is that long. */
const maxTerms = 96;
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
  const pairs = pairFinder(index, words);
  const terms: QueryTerm[] = [];
  const unmatched = new Set<string>();
  const done = new Set<string>();
  for (let at = 0; at < words.length && done.size < maxTerms; at++) {
    const word = words[at]!;
    if (done.has(word.term)) continue;
    done.add(word.term);
    const variants = variantsOf(index, { word, before: pairs(at - 1), after: pairs(at), joined }, weights);
    if (variants.length === 0) {
      if (
        word.kind === "part" &&
        !isStopWord(word.written) &&
        !literal.has(word.term) &&
        !/^\d+$/.test(word.written)
      )
        unmatched.add(word.written);
      continue;
    }
    let idf = 0;
    for (const { term, weight } of variants) idf = Math.max(idf, index.termIdf[term]! * weight);
    const weight =
      (literal.has(word.term) ? weights.literal : 1) * (1 + weights.repeat * Math.log(times.get(word.term)!));
    terms.push({ variants, weight, idf });
  }
  return { terms, unmatched: [...unmatched], action: actions(tokens.map(({ term }) => term)) };
}

/** The words without stop words. A query of nothing but stop words ("who am I") keeps them. */
function meaningfulWords(tokens: readonly Token[]): Token[] {
  const parts = tokens.filter(({ kind }) => kind !== "joined");
  const meaningful = parts.filter(({ term, written }) => !isStopWord(written) && !isStopWord(term));
  return meaningful.length > 0 ? meaningful : parts;
}

type Context = {
  readonly word: Token;
  /** Terms of the word written together with the word before it, and with the word after it; -1 for none. */
  readonly before: number;
  readonly after: number;
  readonly joined: readonly Token[];
};

/** The term of the word at a position written together with the next word, or -1. Two words ask for each pair. */
function pairFinder(index: ToolIndex, words: readonly Token[]): (at: number) => number {
  const found: number[] = [];
  return (at) => {
    if (at < 0 || at + 1 >= words.length) return -1;
    found[at] ??= findTerm(index, stem(words[at]!.written + words[at + 1]!.written));
    return found[at];
  };
}

function variantsOf(index: ToolIndex, { word, before, after, joined }: Context, weights: Weights): Variant[] {
  const found: { term: number; weight: number }[] = [];
  const add = (term: number, weight: number): void => {
    if (!hasTools(index, term)) return;
    const known = found.find((variant) => variant.term === term);
    if (known) known.weight = Math.max(known.weight, weight);
    else found.push({ term, weight });
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
  add(before, weights.joined);
  add(after, weights.joined);
  if (found.length === 0)
    for (const { term, weight } of guesses(index, word.term, weights)) add(term, weight);
  return found.sort((a, b) => b.weight - a.weight);
}

type Guess = { readonly term: number; readonly weight: number };

const minPrefixLength = 3;
const maxPrefixTerms = 8;
const minSlipLength = 5;

function guesses(index: ToolIndex, word: string, weights: Weights): Guess[] {
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
