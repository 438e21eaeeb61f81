/**
 * Sets of characters as a regular expression with the flag `u` reads them: sorted ranges of code points that do not
 * touch. A set may hold more characters than the expression takes, never fewer. Pure.
 */
import type { AST } from "@eslint-community/regexpp";

/** The first and the last code point of each range, in one flat list. */
export type CharSet = readonly number[];

const LAST = 0x10_ff_ff;
const FIRST_BEYOND_ASCII = 0x80;

export const NONE: CharSet = [];

/** Sorts the ranges and joins those that touch. */
function joined(ranges: readonly (readonly [number, number])[]): CharSet {
  const sorted = [...ranges].sort(([a], [b]) => a - b);
  const set: number[] = [];
  for (const [first, last] of sorted) {
    const end = set.at(-1);
    if (end !== undefined && first <= end + 1) set[set.length - 1] = Math.max(end, last);
    else set.push(first, last);
  }
  return set;
}

const rangesOf = (set: CharSet): [number, number][] => {
  const ranges: [number, number][] = [];
  for (let at = 0; at < set.length; at += 2) ranges.push([set[at] as number, set[at + 1] as number]);
  return ranges;
};

export const union = (...sets: readonly CharSet[]): CharSet => {
  const some = sets.filter((set) => set.length > 0);
  return some.length < 2 ? (some[0] ?? NONE) : joined(some.flatMap(rangesOf));
};

function complement(set: CharSet): CharSet {
  const rest: number[] = [];
  let next = 0;
  for (const [first, last] of rangesOf(set)) {
    if (first > next) rest.push(next, first - 1);
    next = last + 1;
  }
  if (next <= LAST) rest.push(next, LAST);
  return rest;
}

export function overlap(one: CharSet, other: CharSet): boolean {
  let [at, against] = [0, 0];
  while (at < one.length && against < other.length) {
    const [first, last] = [one[at] as number, one[at + 1] as number];
    const [otherFirst, otherLast] = [other[against] as number, other[against + 1] as number];
    if (first <= otherLast && otherFirst <= last) return true;
    if (last < otherLast) at += 2;
    else against += 2;
  }
  return false;
}

const range = (first: string, last: string): [number, number] => [
  first.codePointAt(0) as number,
  last.codePointAt(0) as number,
];

const DIGITS = joined([range("0", "9")]);
const WORD = joined([range("0", "9"), range("A", "Z"), range("a", "z"), range("_", "_")]);
/** WhiteSpace and LineTerminator of ECMAScript. */
const SPACES = joined([
  ...[range("\t", "\r"), range(" ", " "), range("\u00a0", "\u00a0"), range("\u1680", "\u1680")],
  ...[range("\u2000", "\u200a"), range("\u2028", "\u2029"), range("\u202f", "\u202f")],
  ...[range("\u205f", "\u205f"), range("\u3000", "\u3000"), range("\ufeff", "\ufeff")],
]);
const LINE_ENDS = joined([range("\n", "\n"), range("\r", "\r"), range("\u2028", "\u2029")]);

/** `\p{...}` as written -> its set. There are some hundred spellings. */
const propertySets = new Map<string, CharSet>();

/** Exact within ASCII; beyond ASCII the set holds every character. */
function propertySet(raw: string): CharSet {
  const known = propertySets.get(raw);
  if (known) return known;
  const test = new RegExp(raw, "u");
  const ascii: [number, number][] = [];
  for (let code = 0; code < FIRST_BEYOND_ASCII; code++) {
    if (test.test(String.fromCodePoint(code))) ascii.push([code, code]);
  }
  const set = joined([...ascii, [FIRST_BEYOND_ASCII, LAST]]);
  propertySets.set(raw, set);
  return set;
}

/** Undefined for a construct that only the flag `v` knows. */
export function setOf(node: AST.CharacterSet | AST.CharacterClass | AST.Character): CharSet | undefined {
  switch (node.type) {
    case "Character":
      return [node.value, node.value];
    case "CharacterClass":
      return classSet(node);
    case "CharacterSet": {
      if (node.kind === "property") return propertySet(node.raw);
      if (node.kind === "any") return complement(LINE_ENDS);
      const set = { digit: DIGITS, space: SPACES, word: WORD }[node.kind];
      return node.negate ? complement(set) : set;
    }
  }
}

function classSet(node: AST.CharacterClass): CharSet | undefined {
  const sets: CharSet[] = [];
  let isExact = true;
  for (const element of node.elements) {
    if (element.type === "CharacterClassRange") sets.push([element.min.value, element.max.value]);
    else if (element.type === "Character") sets.push([element.value, element.value]);
    else if (element.type === "CharacterSet") {
      isExact &&= element.kind !== "property";
      const set = setOf(element);
      if (!set) return undefined;
      sets.push(set);
    } else return undefined;
  }
  const all = union(...sets);
  if (!node.negate) return all;
  const rest = complement(all);
  return isExact ? rest : union(rest, [FIRST_BEYOND_ASCII, LAST]);
}
