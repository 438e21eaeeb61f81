/** Owns: the parts of the ranking whose use is measured, each with the weights that leave it out. */
import type { Weights } from "../../src/shared/search/weights.ts";

/** The weights with other ones for some fields of a tool. */
export const withFields = (weights: Weights, change: Partial<Weights["field"]>): Weights => ({
  ...weights,
  field: { ...weights.field, ...change },
});
export const withSynonyms = (weights: Weights, change: Partial<Weights["synonym"]>): Weights => ({
  ...weights,
  synonym: { ...weights.synonym, ...change },
});

/** Each part, and the weights without it. */
export const PARTS: readonly [part: string, without: (weights: Weights) => Weights][] = [
  ["penalty for long names", (weights) => ({ ...weights, longName: 0 })],
  ["first sentence counts extra", (weights) => withFields(weights, { lead: 0 })],
  ["parameter texts", (weights) => withFields(weights, { paramText: 0 })],
  ["server title and instructions", (weights) => withFields(weights, { serverText: 0 })],
  ["coverage of the query", (weights) => ({ ...weights, coverageBase: 1 })],
  ["coverage of the name", (weights) => ({ ...weights, nameCoverage: 0 })],
  ["action of the tool", (weights) => ({ ...weights, actionFit: 0, actionClash: 0 })],
  ["synonyms: same", (weights) => withSynonyms(weights, { same: 0 })],
  ["synonyms: nouns", (weights) => withSynonyms(weights, { noun: 0 })],
  ["synonyms: translations", (weights) => withSynonyms(weights, { translation: 0 })],
  ["neighbours joined", (weights) => ({ ...weights, joined: 0 })],
  ["parts of a brand count less", (weights) => ({ ...weights, partOfJoined: 1 })],
  ["repeated words count more", (weights) => ({ ...weights, repeat: 0 })],
  ["quoted values count less", (weights) => ({ ...weights, literal: 1 })],
  ["guess: prefix", (weights) => ({ ...weights, prefix: 0 })],
  ["guess: one slip", (weights) => ({ ...weights, slip: 0 })],
];
