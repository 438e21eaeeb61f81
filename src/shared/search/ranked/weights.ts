/**
 * Owns every number of the ranking. src/shared/search/README.md says where each comes from and what taking its part away
 * costs. Read by build/ranked.ts, whose results are in the index, and by query.ts, spelling.ts and ranked.ts.
 */
import type { SynonymKind } from "../synonyms/synonyms.ts";

export type FieldName = "name" | "server" | "lead" | "description" | "paramName" | "paramText" | "serverText";

export type Weights = {
  /** Worth of one occurrence in each field. `lead` is the first sentence of the description, counted again. */
  readonly field: Readonly<Record<FieldName, number>>;
  /** BM25 length normalisation of each field, 0 (none) to 1 (full). */
  readonly lengthNorm: Readonly<Record<FieldName, number>>;
  /** Loss of a tool for each word of its name beyond the third: it does something more special than others. */
  readonly longName: number;
  /** BM25 saturation: a weighted frequency of `k1` earns half of the most that a term can earn. */
  readonly k1: number;
  /** A term of fewer tools than this counts as a term of this many. */
  readonly minDf: number;
  /** Share of the score that does not depend on the part of the query that a tool covers. */
  readonly coverageBase: number;
  /** Bonus for a tool whose whole name the query covers. A part of the name earns its share by IDF. */
  readonly nameCoverage: number;
  /** Bonus for a tool with the action that the query's verbs ask for, and loss for one with another action (actions.ts). */
  readonly actionFit: number;
  readonly actionClash: number;
  /** Share of an exact match that a related word earns, by kind of rule. */
  readonly synonym: Readonly<Record<SynonymKind, number>>;
  /** Related words that earn less than this share of the largest IDF are skipped, since they have too many tools. */
  readonly variantFloor: number;
  /** Two neighbouring words of the query that tools write as one word. */
  readonly joined: number;
  /** A part of a written word ("sql" of "MySQL") if tools have the whole word. */
  readonly partOfJoined: number;
  /** For a word that no tool has: a word that it begins, a word one slip away. */
  readonly prefix: number;
  readonly slip: number;
  /** Weight of a query word that comes n times: 1 + repeat * ln n. */
  readonly repeat: number;
  /** Weight of a query word that stands in a quoted value, a path or an address. */
  readonly literal: number;
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
  longName: 0.1,
  k1: 1.2,
  minDf: 2,
  coverageBase: 0.7,
  nameCoverage: 0.4,
  actionFit: 0.04,
  actionClash: 0.2,
  synonym: { same: 0.55, noun: 0.4, translation: 0.5 },
  variantFloor: 0.08,
  joined: 0.6,
  partOfJoined: 0.6,
  prefix: 0.45,
  slip: 0.7,
  repeat: 0.4,
  literal: 0.5,
};
