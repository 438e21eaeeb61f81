/**
 * Decides whether a backtracking engine provably matches a regular expression in linear time, whatever the text. Pi
 * runs the patterns of schemas on its main thread, so a server's slow pattern must not get there. The rule is
 * conservative: a pattern that it cannot judge counts as slow. Pure.
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
import { type CharSet, NONE, overlap, union } from "./chars.ts";
import { type Facts, most, PartFacts, Slow, sum, times } from "./facts.ts";

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
