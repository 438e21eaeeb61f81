/**
 * Owns every number of the ranking. src/shared/search/README.md says where each comes from and what taking its part away
 * costs. build.ts puts its results into the index. Also owns which texts of a tool
 * are searched, and how much of each: a server controls all of them, so every walk and every text is bounded.
 */
import { LIMITS } from "../protocol/limits.ts";
import { isObject } from "../protocol/values.ts";
import type { SynonymKind } from "./synonyms.ts";

export type FieldName =
  | "name"
  | "keywords"
  | "server"
  | "lead"
  | "description"
  | "paramName"
  | "paramText"
  | "serverText";

export type Weights = {
  /** Worth of one occurrence in each field. `lead` is the first sentence of the description, counted again. */
  readonly field: Readonly<Record<FieldName, number>>;
  /** Times the worth of a Chinese, Japanese or Korean term in `paramText`: the names, which are English, say nothing of it. */
  readonly unspacedParamText: number;
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
  /** Bonus for a tool with the action that the query's verbs ask for, and loss for one with another action (words.ts). */
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
    keywords: 1.4,
    server: 0.6,
    lead: 0.6,
    description: 0.45,
    paramName: 0.5,
    paramText: 0.15,
    serverText: 0.6,
  },
  unspacedParamText: 2,
  lengthNorm: {
    name: 0.5,
    // Few tools have any: their mean length says nothing.
    keywords: 0,
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

export type SearchTool = {
  readonly server: string;
  readonly name: string;
  /** Name that the model calls, if it is not `mcp__server__name`. */
  readonly fullName?: string;
  readonly description?: string;
  /** The person's own words for it (`searchKeywords`), with spaces between. */
  readonly keywords?: string;
  readonly inputSchema?: unknown;
  /** Title and instructions of the server. */
  readonly serverDescription?: string;
};

const maxDepth = 4;
const maxNodes = 300;
const maxEnumValues = 12;
const maxEnumLength = 40;
const maxNameCharacters = 256;
const maxTextCharacters = 4_000;
const maxSchemaCharacters = 3_000;

export function toolFields(tool: SearchTool): Record<FieldName, string> {
  const schema = schemaTexts(tool.inputSchema);
  return {
    name: text(tool.name, maxNameCharacters),
    keywords: text(tool.keywords, LIMITS.searchKeywordsChars),
    server: text(tool.server, maxNameCharacters),
    lead: lead(text(tool.description, 300)),
    description: text(tool.description, maxTextCharacters),
    paramName: schema.names.join(" "),
    paramText: schema.texts.join(" "),
    serverText: text(tool.serverDescription, 600),
  };
}

function text(value: unknown, maxCharacters: number): string {
  return typeof value === "string" ? value.slice(0, maxCharacters) : "";
}

type SchemaTexts = { names: string[]; texts: string[] };
type Visit = { node: unknown; depth: number };

/** Names and texts of a schema, breadth first, so that the bound cuts the deepest parameters and never the tool's own. */
function schemaTexts(schema: unknown): SchemaTexts {
  const found: SchemaTexts = { names: [], texts: [] };
  let budget = maxSchemaCharacters;
  const queue: Visit[] = [{ node: schema, depth: 0 }];
  const keep = (into: string[], value: unknown, maxCharacters: number): void => {
    if (typeof value !== "string" || budget <= 0) return;
    const kept = value.slice(0, Math.min(maxCharacters, budget));
    budget -= kept.length;
    into.push(kept);
  };
  for (let at = 0; at < queue.length && at < maxNodes && budget > 0; at++) {
    const { node, depth } = queue[at]!;
    if (!isObject(node)) continue;
    if (depth > 0) keep(found.texts, node.description, 400);
    for (const value of list(node.enum, maxEnumValues)) {
      if (typeof value === "string" && value.length <= maxEnumLength) keep(found.texts, value, maxEnumLength);
    }
    if (depth >= maxDepth) continue;
    const properties = node.properties;
    if (isObject(properties)) {
      for (const name of Object.keys(properties).slice(0, maxNodes)) {
        keep(found.names, name, 60);
        queue.push({ node: properties[name], depth: depth + 1 });
      }
    }
    for (const child of [
      node.items,
      ...list(node.anyOf, 8),
      ...list(node.oneOf, 8),
      ...list(node.allOf, 8),
    ]) {
      if (isObject(child)) queue.push({ node: child, depth: depth + 1 });
    }
  }
  return found;
}

function list(value: unknown, max: number): unknown[] {
  return Array.isArray(value) ? value.slice(0, max) : [];
}

/** The first sentence, which says what a tool does. */
function lead(description: string): string {
  return (
    /^[\s\S]{12,}?(?:[.!?](?=\s)|[\u3002\uff01\uff1f\n]|$)/u.exec(description.trim())?.[0] ?? description
  );
}
