/**
 * The patterns of a schema: which of them a host may run, and how the others are shown in a description. Pi checks
 * arguments on its main thread, so it gets only patterns that a backtracking engine provably matches in linear time,
 * whatever the text; the server checks the others. The rule is conservative: a pattern that it cannot judge counts as slow.
 * Pure.
 *
 * The rule: the next character decides each choice of the engine (between alternatives, or between another round of a
 * loop and going on). Then a wrong choice fails at once, and each part of the text is tried once.
 * Two exceptions cost a bounded factor:
 * - a choice that the next character does not decide, if it is made a bounded number of times: each way through it is
 *   counted
 * - a loop that can be left at any position, if the pattern behind it has a bounded length
 * A pattern that may start anywhere in the text is tried at each position, so its length must be bounded too.
 */
import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { isTakenEverywhere, type PatternUse } from "./engines.ts";
import { kept, type Repair } from "./keywords.ts";

/** The first and the last code point of each range, in one flat list. */
type CharSet = readonly number[];

const LAST = 0x10_ff_ff;
const FIRST_BEYOND_ASCII = 0x80;

const NONE: CharSet = [];

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

const union = (...sets: readonly CharSet[]): CharSet => {
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

function overlap(one: CharSet, other: CharSet): boolean {
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
const propertySet = (raw: string): CharSet =>
  kept(propertySets, raw, () => {
    const test = new RegExp(raw, "u");
    const ascii: [number, number][] = [];
    for (let code = 0; code < FIRST_BEYOND_ASCII; code++) {
      if (test.test(String.fromCodePoint(code))) ascii.push([code, code]);
    }
    return joined([...ascii, [FIRST_BEYOND_ASCII, LAST]]);
  });

/** Undefined for a construct that only the flag `v` knows. */
function setOf(node: AST.CharacterSet | AST.CharacterClass | AST.Character): CharSet | undefined {
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

/** `pattern`: not a regular expression of JavaScript. `slow`: not provably fast. `engine`: some provider refuses it. */
type Judgement = "sound" | Extract<Repair, "pattern" | "slow" | "engine">;

/** Whether the server takes the pattern for one, so that it still checks it. */
export const isLeftToServer = (judgement: Judgement): boolean =>
  judgement === "slow" || judgement === "engine";

export type Patterns = ReturnType<typeof openPatterns>;

/** Characters of the patterns of one schema that are judged. Real schemas have fewer. */
const JUDGED_CHARS = 64 * 1024;
/** Patterns of one schema that are shown. */
const SHOWN = 50;
const SHOWN_CHARS = 120;

/** Control characters, invisible characters, marks of direction and halves of characters, all shown by their codes. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const escaped = (char: string): string => `\\u{${char.codePointAt(0)?.toString(16)}}`;

/** Pi's validator compiles patterns with the flag `u`. */
function compiles(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false;
  }
}

/** Opens the patterns of one schema, which share one budget. `declares`: providers get the schema. */
export function openPatterns(declares: boolean) {
  const known = { value: new Map<string, Judgement>(), name: new Map<string, Judgement>() };
  let chars = 0;
  let shown = 0;
  const judge = (source: string, use: PatternUse): Judgement => {
    chars += source.length;
    if (source.length > PATTERN_CHARS || chars > JUDGED_CHARS) return "slow";
    if (!compiles(source)) return "pattern";
    if (!isLinear(source)) return "slow";
    return declares && !isTakenEverywhere(source, use) ? "engine" : "sound";
  };
  return {
    judge: (source: unknown, use: PatternUse): Judgement =>
      typeof source === "string" ? kept(known[use], source, () => judge(source, use)) : "pattern",
    /** The pattern as `/^a$/`, cut and printable. Undefined after `SHOWN` patterns. */
    show: (source: string): string | undefined => {
      if (++shown > SHOWN) return undefined;
      const characters = [...source.slice(0, SHOWN_CHARS + 1)];
      const cut = source.length > SHOWN_CHARS ? [...characters.slice(0, -1), "…"] : characters;
      return `/${cut.join("").replace(UNPRINTABLE, escaped)}/`;
    },
  };
}

/** Thrown by any part of the analysis that cannot prove linear time; isLinear catches it. */
class Slow extends Error {}

interface Facts {
  /** Characters that the part may begin with. */
  first: CharSet;
  /** True if the part may match the empty text. */
  isNullable: boolean;
  /** The most characters that the part matches; Infinity for a loop. */
  chars: number;
}

const NOTHING: Facts = { first: NONE, isNullable: true, chars: 0 };

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const most = (numbers: readonly number[]): number => Math.max(0, ...numbers);
/** The product, where 0 times Infinity is 0. */
const times = (rounds: number, chars: number): number => (rounds === 0 || chars === 0 ? 0 : rounds * chars);

/** Facts of the parts of one pattern, each computed once. */
class PartFacts {
  readonly #known = new Map<AST.Element | AST.Alternative, Facts>();

  /** Throws `Slow` for a part that cannot be judged. */
  of(node: AST.Element | AST.Alternative): Facts {
    return kept(this.#known, node, () => this.#compute(node));
  }

  #compute(node: AST.Element | AST.Alternative): Facts {
    switch (node.type) {
      case "Alternative":
        return this.sequence(node.elements);
      case "Group":
      case "CapturingGroup": {
        const all = node.alternatives.map((alternative) => this.of(alternative));
        return {
          first: union(...all.map(({ first }) => first)),
          isNullable: all.some(({ isNullable }) => isNullable),
          chars: most(all.map(({ chars }) => chars)),
        };
      }
      case "Assertion":
        return NOTHING;
      case "Quantifier": {
        const { first, isNullable, chars } = this.of(node.element);
        return { first, isNullable: isNullable || node.min === 0, chars: times(node.max, chars) };
      }
      case "Character":
      case "CharacterClass":
      case "CharacterSet": {
        const first = setOf(node);
        if (!first) throw new Slow();
        return { first, isNullable: false, chars: 1 };
      }
      default:
        // A backreference, or a construct that only the flag `v` knows.
        throw new Slow();
    }
  }

  /** Facts of several parts one after the other. */
  sequence(elements: readonly AST.Element[]): Facts {
    let chars = 0;
    const firsts: CharSet[] = [];
    let isNullable = true;
    for (const element of elements) {
      const facts = this.of(element);
      chars += facts.chars;
      if (isNullable) firsts.push(facts.first);
      isNullable &&= facts.isNullable;
    }
    return { first: union(...firsts), isNullable, chars };
  }
}

/** Real patterns are shorter. The time to judge a pattern grows with the square of its length. */
export const PATTERN_CHARS = 1_000;
/** Ways through a pattern of bounded length. */
const WAYS = 1_000;
/** Characters of such a pattern, multiplied by its ways. */
const BOUNDED_STEPS = 100_000;
/** Ways through a pattern that has loops, each of which may run over the whole text. */
const LOOP_WAYS = 16;
/** Characters that may follow a loop that can be left at any position. */
const AFTER_LOOP_CHARS = 64;
/** Characters, multiplied by ways, of a pattern that is tried at each position of the text. */
const SEARCH_STEPS = 1_000;
/** Parts of a pattern after its counted loops are written out, as an engine may do. */
const PARTS = 5_000;

/** The characters that may follow a part of the pattern, and how many of them at most. */
interface After {
  first: CharSet;
  chars: number;
}

const THE_END: After = { first: NONE, chars: 0 };

/** Counts the ways through a pattern. */
class Judge {
  readonly #facts = new PartFacts();

  factsOf(node: AST.Element | AST.Alternative): Facts {
    return this.#facts.of(node);
  }

  /** The number of ways through the node that an engine may have to try. Throws if it grows with the text. */
  ways(node: AST.Element | AST.Alternative, after: After): number {
    switch (node.type) {
      case "Alternative":
        return this.#waysOfSequence(node.elements, after);
      case "Group":
        if (node.modifiers) throw new Slow();
        return this.waysOfAlternatives(node.alternatives, after);
      case "CapturingGroup":
        return this.waysOfAlternatives(node.alternatives, after);
      case "Quantifier":
        return this.#waysOfQuantifier(node, after);
      case "Assertion":
        this.#checkAssertion(node);
        return 1;
      default:
        return 1;
    }
  }

  #waysOfSequence(elements: readonly AST.Element[], after: After): number {
    let ways = 1;
    let behind = after;
    for (const element of elements.toReversed()) {
      ways *= this.ways(element, behind);
      const { first, isNullable, chars } = this.factsOf(element);
      behind = { first: isNullable ? union(first, behind.first) : first, chars: chars + behind.chars };
    }
    if (ways > WAYS) throw new Slow();
    return ways;
  }

  /** Alternatives that the next character tells apart share one way; the others count one way each. */
  waysOfAlternatives(alternatives: readonly AST.Alternative[], after: After): number {
    const groups: { first: CharSet; isNullable: boolean; ways: number }[] = [];
    for (const alternative of alternatives) {
      const facts = this.factsOf(alternative);
      let group = {
        first: facts.isNullable ? union(facts.first, after.first) : facts.first,
        isNullable: facts.isNullable,
        ways: this.ways(alternative, after),
      };
      for (const other of [...groups]) {
        if (!(group.isNullable && other.isNullable) && !overlap(group.first, other.first)) continue;
        groups.splice(groups.indexOf(other), 1);
        group = {
          first: union(group.first, other.first),
          isNullable: group.isNullable || other.isNullable,
          ways: group.ways + other.ways,
        };
      }
      groups.push(group);
    }
    return Math.max(1, ...groups.map(({ ways }) => ways));
  }

  #waysOfQuantifier({ min, max, element }: AST.Quantifier, after: After): number {
    if (max === 0) return 1;
    const { first, isNullable, chars } = this.factsOf(element);
    const inLoop: After = {
      first: max > 1 ? union(first, after.first) : after.first,
      chars: times(max - 1, chars) + after.chars,
    };
    const ways = this.ways(element, inLoop);
    const isUndecided = max > min && (isNullable || overlap(first, after.first));
    if (max === Infinity) {
      // A round that may be empty, or that has two ways for one text, has more ways the longer the text is.
      if (isNullable || ways > 1) throw new Slow();
      if (isUndecided && after.chars > AFTER_LOOP_CHARS) throw new Slow();
      return 1;
    }
    const all = ways ** max * (isUndecided ? max - min + 1 : 1);
    if (all > WAYS) throw new Slow();
    return all;
  }

  #checkAssertion(node: AST.Assertion): void {
    if (node.kind !== "lookahead" && node.kind !== "lookbehind") return;
    const chars = most(node.alternatives.map((alternative) => this.factsOf(alternative).chars));
    const ways = this.waysOfAlternatives(node.alternatives, THE_END);
    if (chars * ways > AFTER_LOOP_CHARS) throw new Slow();
  }

  /** The most characters that are matched before the pattern fails or is sure to match. */
  charsUntilSure({ elements }: AST.Alternative): number {
    const last = elements.at(-1);
    const before = this.#facts.sequence(elements.slice(0, -1)).chars;
    if (!last) return 0;
    // Nothing follows the loop, so the pattern matches as soon as the loop has run its fewest rounds.
    if (last.type === "Quantifier") return before + times(last.min, this.factsOf(last.element).chars);
    return before + this.factsOf(last).chars;
  }
}

/** The alternatives of the pattern, without a group around them. */
const alternativesOf = (alternatives: readonly AST.Alternative[]): AST.Alternative[] =>
  alternatives.flatMap((alternative) => {
    const [only, ...more] = alternative.elements;
    const isGroup = only?.type === "Group" || only?.type === "CapturingGroup";
    return isGroup && more.length === 0 ? alternativesOf(only.alternatives) : [alternative];
  });

const startsAtStart = ({ elements: [first] }: AST.Alternative): boolean =>
  first?.type === "Assertion" && first.kind === "start";

/** The number of parts, with each counted loop around more than one character written out. */
function partsOf(node: AST.Element | AST.Alternative): number {
  if (node.type === "Alternative") return sum(node.elements.map(partsOf));
  if (node.type === "Quantifier") {
    const parts = partsOf(node.element);
    return parts === 1 ? 1 : parts * Math.max(1, node.max === Infinity ? node.min : node.max);
  }
  return "alternatives" in node ? sum(node.alternatives.map(partsOf)) : 1;
}

/** Throws `Slow` unless the pattern provably takes linear time. */
function judge(pattern: AST.Pattern): void {
  if (sum(pattern.alternatives.map(partsOf)) > PARTS) throw new Slow();
  const judge = new Judge();
  const ways = judge.waysOfAlternatives(pattern.alternatives, THE_END);
  const chars = most(pattern.alternatives.map((alternative) => judge.factsOf(alternative).chars));
  if (chars === Infinity ? ways > LOOP_WAYS : ways > 1 && chars * ways > BOUNDED_STEPS) throw new Slow();
  for (const alternative of alternativesOf(pattern.alternatives)) {
    if (startsAtStart(alternative)) continue;
    if (times(ways, judge.charsUntilSure(alternative)) > SEARCH_STEPS) throw new Slow();
  }
}

/** `source`: the source of a regular expression with the flag `u`, the flag that Pi gives to patterns. */
export function isLinear(source: string): boolean {
  if (source.length > PATTERN_CHARS) return false;
  try {
    const parser = new RegExpParser({ ecmaVersion: 2025 });
    judge(parser.parsePattern(source, 0, source.length, { unicode: true }));
    return true;
  } catch {
    // Slow, or a syntax that is newer than the parser.
    return false;
  }
}
