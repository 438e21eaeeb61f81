/**
 * What each part of a regular expression may match: the characters it may begin with, whether it may match nothing,
 * and how many characters it takes at most. Pure. Called by time.ts.
 */
import type { AST } from "@eslint-community/regexpp";
import { type CharSet, NONE, setOf, union } from "./chars.ts";

/** Thrown by any part of the analysis that cannot prove linear time; isLinear catches it. */
export class Slow extends Error {}

export interface Facts {
  /** Characters that the part may begin with. */
  first: CharSet;
  /** True if the part may match the empty text. */
  isNullable: boolean;
  /** The most characters that the part matches; Infinity for a loop. */
  chars: number;
}

const NOTHING: Facts = { first: NONE, isNullable: true, chars: 0 };

export const sum = (numbers: readonly number[]): number =>
  numbers.reduce((total, number) => total + number, 0);
export const most = (numbers: readonly number[]): number => Math.max(0, ...numbers);
/** The product, where 0 times Infinity is 0. */
export const times = (rounds: number, chars: number): number =>
  rounds === 0 || chars === 0 ? 0 : rounds * chars;

/** Facts of the parts of one pattern, each computed once. */
export class PartFacts {
  readonly #known = new Map<AST.Element | AST.Alternative, Facts>();

  /** Throws `Slow` for a part that cannot be judged. */
  of(node: AST.Element | AST.Alternative): Facts {
    const known = this.#known.get(node);
    if (known) return known;
    const facts = this.#compute(node);
    this.#known.set(node, facts);
    return facts;
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
