/**
 * Whether a backtracking engine provably matches a regular expression in linear time, whatever the text. Pi runs
 * the patterns of schemas on its main thread, so a slow one of a server must not get there. The rule is
 * conservative: a pattern that it cannot judge counts as slow. Pure.
 *
 * The rule: wherever the engine chooses (between alternatives, or between another round of a loop and going on),
 * the next character decides. Then a wrong choice fails at once, and each part of the text is tried once.
 * Exceptions cost a bounded factor:
 * - A choice that the next character does not decide, and that is made a bounded number of times: each way
 *   through it is counted.
 * - A loop that can be left at any place, when what follows it has a bounded length.
 * A pattern that may start anywhere in the text is tried at each place, so its length must be bounded too.
 */
import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { type CharSet, NONE, overlap, setOf, union } from "./chars.ts";

/** Real ones are shorter, and the time to judge one grows with its square. */
export const PATTERN_CHARS = 1_000;
/** Ways through a pattern of bounded length, and its characters times its ways. */
const WAYS = 1_000;
const BOUNDED_STEPS = 100_000;
/** Ways through a pattern that has loops, each of which may run over the whole text. */
const LOOP_WAYS = 16;
/** Characters that may follow a loop that can be left at any place. */
const AFTER_LOOP_CHARS = 64;
/** Characters times ways of a pattern that is tried at each place of the text. */
const SEARCH_STEPS = 1_000;
/** Parts of a pattern whose counted loops are written out, as an engine may do. */
const PARTS = 5_000;

/** Thrown by the parts of the analysis, and caught where it starts. */
class Slow extends Error {}

interface Facts {
  /** Characters that it may begin with. */
  first: CharSet;
  /** It may match nothing. */
  isNullable: boolean;
  /** Most characters that it matches. */
  chars: number;
}

/** What may come behind a part of the pattern. */
interface After {
  first: CharSet;
  chars: number;
}

const NOTHING: Facts = { first: NONE, isNullable: true, chars: 0 };
const THE_END: After = { first: NONE, chars: 0 };

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
const most = (numbers: readonly number[]): number => Math.max(0, ...numbers);
/** Of which one may be 0 and the other infinite. */
const times = (rounds: number, chars: number): number => (rounds === 0 || chars === 0 ? 0 : rounds * chars);

class Judge {
  readonly #facts = new Map<AST.Element | AST.Alternative, Facts>();

  factsOf(node: AST.Element | AST.Alternative): Facts {
    const known = this.#facts.get(node);
    if (known) return known;
    const facts = this.#compute(node);
    this.#facts.set(node, facts);
    return facts;
  }

  #compute(node: AST.Element | AST.Alternative): Facts {
    switch (node.type) {
      case "Alternative":
        return this.#sequence(node.elements);
      case "Group":
      case "CapturingGroup": {
        const all = node.alternatives.map((alternative) => this.factsOf(alternative));
        return {
          first: union(...all.map(({ first }) => first)),
          isNullable: all.some(({ isNullable }) => isNullable),
          chars: most(all.map(({ chars }) => chars)),
        };
      }
      case "Assertion":
        return NOTHING;
      case "Quantifier": {
        const { first, isNullable, chars } = this.factsOf(node.element);
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
        // A backreference, or what only the flag `v` knows.
        throw new Slow();
    }
  }

  #sequence(elements: readonly AST.Element[]): Facts {
    let chars = 0;
    const firsts: CharSet[] = [];
    let isNullable = true;
    for (const element of elements) {
      const facts = this.factsOf(element);
      chars += facts.chars;
      if (isNullable) firsts.push(facts.first);
      isNullable &&= facts.isNullable;
    }
    return { first: union(...firsts), isNullable, chars };
  }

  /** How many ways through the node an engine may have to try. Throws where they grow with the text. */
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

  /** Alternatives that the next character tells apart are one way, others one each. */
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
      // A round that may be empty, or that has two ways for one text, has ever more ways for a longer one.
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

  /** Characters that are matched at most before the pattern fails or is sure to match. */
  charsUntilSure({ elements }: AST.Alternative): number {
    const last = elements.at(-1);
    const before = this.#sequence(elements.slice(0, -1)).chars;
    if (!last) return 0;
    // Nothing comes behind: however many rounds there are, it matches after the fewest.
    if (last.type === "Quantifier") return before + times(last.min, this.factsOf(last.element).chars);
    return before + this.factsOf(last).chars;
  }
}

/** The alternatives of the pattern, also where a group stands around them. */
const alternativesOf = (alternatives: readonly AST.Alternative[]): AST.Alternative[] =>
  alternatives.flatMap((alternative) => {
    const [only, ...more] = alternative.elements;
    const isGroup = only?.type === "Group" || only?.type === "CapturingGroup";
    return isGroup && more.length === 0 ? alternativesOf(only.alternatives) : [alternative];
  });

const startsAtStart = ({ elements: [first] }: AST.Alternative): boolean =>
  first?.type === "Assertion" && first.kind === "start";

/** Parts of the pattern, with each counted loop around more than one character written out. */
function partsOf(node: AST.Element | AST.Alternative): number {
  if (node.type === "Alternative") return sum(node.elements.map(partsOf));
  if (node.type === "Quantifier") {
    const parts = partsOf(node.element);
    return parts === 1 ? 1 : parts * Math.max(1, node.max === Infinity ? node.min : node.max);
  }
  return "alternatives" in node ? sum(node.alternatives.map(partsOf)) : 1;
}

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

/** `source`: of a regular expression with the flag `u`, the one that Pi gives to patterns. */
export function isLinear(source: string): boolean {
  if (source.length > PATTERN_CHARS) return false;
  try {
    const parser = new RegExpParser({ ecmaVersion: 2025 });
    judge(parser.parsePattern(source, 0, source.length, { unicode: true }));
    return true;
  } catch {
    // Slow, or of a newer syntax than the parser knows.
    return false;
  }
}
