/**
 * Owns every number of the ranking. README.md says where each comes from and what taking its part away costs.
 * Read by build.ts (in the index already), query.ts, spelling.ts, score.ts and top.ts.
 */
import type { SynonymKind } from "../synonyms/synonyms.ts";

export type FieldName = "name" | "server" | "lead" | "description" | "paramName" | "paramText" | "serverText";

export type Weights = {
  /** Worth of one occurrence in each field. `lead` is the first sentence of the description, counted again. */
  readonly field: Readonly<Record<FieldName, number>>;
  /** BM25 length normalisation of each field, 0 (none) to 1 (full). */
  readonly lengthNorm: Readonly<Record<FieldName, number>>;
  /** BM25 saturation: a weighted frequency of `k1` earns half of what a term can earn. */
  readonly k1: number;
  /** Share of a term's IDF that comes from how many servers, not tools, have it. */
  readonly serverIdf: number;
  /** A term on fewer tools (or servers) than this is no rarer than one on this many. */
  readonly minDf: number;
  /** Share of the score that does not depend on how much of the query a tool covers. */
  readonly coverageBase: number;
  /** Bonus for a tool whose whole name the query covers; less for a part, by IDF. */
  readonly nameCoverage: number;
  /** Bonus for a tool that does what the query's verbs ask for, and loss for one that does something else (actions.ts). */
  readonly actionFit: number;
  readonly actionClash: number;
  /** Share of an exact match that a related word earns, by kind of rule. */
  readonly synonym: Readonly<Record<SynonymKind, number>>;
  /** Rules of kind `fallback` hold for words that at most this many tools have. */
  readonly fallbackMost: number;
  /** Related words that earn less than this share of the largest IDF are not worth the walk over their many tools. */
  readonly variantFloor: number;
  /** Two neighbouring words of the query, found as one written word. */
  readonly joined: number;
  /** A part of a written word ("sql" of "MySQL") where tools have the whole. */
  readonly partOfJoined: number;
  /** For a word no tool has: each of two known words it is made of, a word it begins, a word one slip away. */
  readonly compound: number;
  readonly prefix: number;
  readonly slip: number;
  /** Weight of a query word that came n times: 1 + repeat * ln n. */
  readonly repeat: number;
  /** Weight of a query word that stands in a quoted value, a path or an address. */
  readonly literal: number;
  /** Factor for each better hit of the same server. */
  readonly diversity: number;
};

export const WEIGHTS: Weights = {
  field: {
    name: 1.4,
    server: 0.6,
    lead: 0.6,
    description: 0.45,
    paramName: 0.5,
    paramText: 0.15,
    serverText: 0.6,
  },
  lengthNorm: {
    name: 0.5,
    server: 0,
    lead: 0.2,
    description: 0.6,
    paramName: 0.5,
    paramText: 0.5,
    serverText: 0.5,
  },
  k1: 1.2,
  serverIdf: 0.4,
  minDf: 2,
  coverageBase: 0.7,
  nameCoverage: 0.4,
  actionFit: 0.04,
  actionClash: 0.2,
  synonym: { same: 0.55, verb: 0.5, noun: 0.4, fallback: 0.4, translation: 0.5 },
  fallbackMost: 5,
  variantFloor: 0.08,
  joined: 0.6,
  partOfJoined: 0.6,
  compound: 0.6,
  prefix: 0.45,
  slip: 0.7,
  repeat: 0.4,
  literal: 0.5,
  diversity: 0.97,
};
