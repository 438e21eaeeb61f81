/**
 * The table of what each keyword of JSON Schema may hold. Sources: JSON Schema 2020-12, meta-schemas of core,
 * applicator, validation, meta-data, format and content; and keywords of older drafts. Pure.
 */
import { isObject } from "../../../src/shared/protocol/values.ts";

export type Schema = Record<string, unknown>;

/**
 * How schemas stand below a keyword. `schema`: one schema. `items`: one schema, or a list by position. `tuple`: a list
 * by position. `union`: a list of alternatives. `all`: a list of schemas that all hold. `map`: schemas by name.
 * `dependencies`: by name a schema or a list of names.
 */
export type Holder = "schema" | "items" | "tuple" | "union" | "all" | "map" | "dependencies";

const HOLDER_KEYWORDS: Record<Holder, readonly string[]> = {
  schema: [
    ...["additionalProperties", "unevaluatedProperties", "propertyNames", "not", "if", "then", "else"],
    ...["additionalItems", "unevaluatedItems", "contains", "contentSchema"],
  ],
  items: ["items"],
  tuple: ["prefixItems"],
  union: ["anyOf", "oneOf"],
  all: ["allOf"],
  map: ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
  dependencies: ["dependencies"],
};

export const HOLDERS: ReadonlyMap<string, Holder> = new Map(
  Object.entries(HOLDER_KEYWORDS).flatMap(([holder, keys]) => keys.map((key) => [key, holder as Holder])),
);

/** Keywords whose values map names to schemas. */
export const MAPS: ReadonlySet<string> = new Set([...HOLDER_KEYWORDS.map, ...HOLDER_KEYWORDS.dependencies]);

/** Keywords whose values are data, whatever they look like. */
export const DATA: ReadonlySet<string> = new Set(["const", "default", "examples", "example", "enum"]);

const TYPES = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

/** The value that is known for the key; made, and kept, at the first question. */
export function kept<K, V>(
  known: { has(key: K): boolean; get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  if (!known.has(key)) known.set(key, make());
  return known.get(key) as V;
}

export const isSchema = (value: unknown): boolean => isObject(value) || typeof value === "boolean";

/**
 * Whether the object below a keyword maps names to schemas. Below a keyword that JSON Schema does not define
 * (`isForeign`), the object may itself be a schema that has the keyword's name.
 */
export const isMapBelow = (holder: Holder, value: Schema, isForeign: boolean): boolean =>
  (holder === "map" || holder === "dependencies") && !(isForeign && !Object.values(value).every(isSchema));

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;

/** The list with each scalar once: a second one says nothing more, and some providers refuse the list. */
function distinct(list: readonly unknown[]): readonly unknown[] {
  const seen = new Set<unknown>();
  const once = list.filter((item) => !isScalar(item) || (!seen.has(item) && seen.add(item)));
  return once.length === list.length ? list : once;
}

const typeWord = (value: unknown): string | undefined => {
  if (typeof value !== "string") return undefined;
  if (TYPES.has(value)) return value;
  // Some generators write OBJECT or STRING.
  const word = value.toLowerCase();
  return TYPES.has(word) ? word : undefined;
};

/** The value of `type` in the words of JSON Schema, or undefined if it has other words. */
export function soundType(value: unknown): unknown {
  if (!Array.isArray(value)) return typeWord(value);
  const words = value.map(typeWord);
  if (words.length === 0 || words.includes(undefined)) return undefined;
  const once = distinct(words);
  return once.length === value.length && words.every((word, i) => word === value[i]) ? value : once;
}

/** The list of names, each once; undefined if the value is not a list. */
export function soundNames(value: unknown): unknown {
  if (!Array.isArray(value)) return undefined;
  const names = value.every((name) => typeof name === "string")
    ? value
    : value.filter((name) => typeof name === "string");
  return distinct(names);
}

const only =
  (isSound: (value: unknown) => boolean) =>
  (value: unknown): unknown =>
    isSound(value) ? value : undefined;

const text = only((value) => typeof value === "string");
const flag = only((value) => typeof value === "boolean");
const number = only(Number.isFinite);
const count = only((value) => Number.isInteger(value) && (value as number) >= 0);

/** Keyword without schemas below it -> its value, the value that must have been meant, or undefined for neither. */
const MENDS: Record<string, (value: unknown) => unknown> = {
  type: soundType,
  enum: (value) => (Array.isArray(value) && value.length > 0 ? distinct(value) : undefined),
  required: soundNames,
  dependentRequired: only((value) => isObject(value) && Object.values(value).every(isNameList)),
  multipleOf: only((value) => Number.isFinite(value) && (value as number) > 0),
  examples: only(Array.isArray),
  $vocabulary: only(isObject),
  ...Object.fromEntries(
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((key) => [key, number]),
  ),
  ...Object.fromEntries(
    ["Length", "Items", "Properties", "Contains"].flatMap((of) => [
      [`min${of}`, count],
      [`max${of}`, count],
    ]),
  ),
  ...Object.fromEntries(
    [
      ...["title", "description", "format", "contentEncoding", "contentMediaType"],
      ...["$schema", "$id", "$anchor", "$dynamicAnchor", "$comment"],
    ].map((key) => [key, text]),
  ),
  ...Object.fromEntries(
    ["uniqueItems", "deprecated", "readOnly", "writeOnly", "$recursiveAnchor"].map((key) => [key, flag]),
  ),
};

function isNameList(value: unknown): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string");
}

export const VALUES: ReadonlyMap<string, (value: unknown) => unknown> = new Map(Object.entries(MENDS));

const LIMIT_PAIRS = [
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
] as const;

/** Draft 4 had `minimum: 1, exclusiveMinimum: true` for what is now `exclusiveMinimum: 1`. */
export function withNumericLimits(node: Schema): Schema {
  let entries = Object.entries(node);
  for (const [exclusive, inclusive] of LIMIT_PAIRS) {
    const isExclusive = node[exclusive];
    if (typeof isExclusive !== "boolean") continue;
    const limit = node[inclusive];
    const moves = isExclusive && typeof limit === "number";
    entries = entries.flatMap((entry): [string, unknown][] => {
      if (entry[0] === exclusive) return moves ? [[exclusive, limit]] : [];
      return moves && entry[0] === inclusive ? [] : [entry];
    });
  }
  return Object.fromEntries(entries);
}

export const hasFlagLimits = (node: Schema): boolean =>
  typeof node.exclusiveMinimum === "boolean" || typeof node.exclusiveMaximum === "boolean";

/** What had to be done to a schema. */
export type Repair =
  | ("root" | "union" | "name" | "reference" | "loop" | "pattern" | "slow")
  | ("keyword" | "value" | "schema" | "choice" | "depth" | "size" | "effort")
  | ("engine" | "tuple" | "type" | "needs" | "required" | "circle" | "beside" | "count");

/** A schema takes more than it says after one of these, which inverts the meaning of what stands below a `not`. */
export const LOOSENS: ReadonlySet<Repair> = new Set([
  ...(["reference", "loop", "pattern", "slow", "keyword", "schema", "depth", "effort"] as const),
  ...(["engine", "tuple", "type", "needs", "required", "circle", "beside", "count", "choice"] as const),
]);

const WORDS: Record<Repair, string> = {
  root: "the root was not an object schema",
  union: "a union at the root was merged into one object",
  reference: "a $ref that leads nowhere was left out",
  loop: "a $ref that leads back to itself was left out",
  pattern: "a pattern that is not a regular expression was left out",
  keyword: "a keyword with an invalid value was left out",
  value: "a value was rewritten in the form that its keyword takes",
  schema: "a value that is not a schema was replaced by a schema that takes anything",
  name: "parameters with names that providers refuse were moved to the description",
  slow: "patterns that could take a host very long were moved to descriptions; the server checks them",
  engine: "patterns that some providers refuse were moved to descriptions; the server checks them",
  tuple: "schemas by position became one schema for every item, with the order in the description",
  type: "a type that the values or the union beside it contradict, or that stands beside a union of references, was left out",
  needs: "a choice between required parameters was moved to the description; the server checks it",
  required: "required parameters that the schema excludes, or whose names providers refuse, were loosened",
  circle: "required parameters that lead back to themselves became optional",
  beside: "keywords beside a $ref were left out",
  count: "large limits of lengths and items were moved to descriptions; the server checks them",
  choice: "keywords that depend on a part that was left out were loosened",
  depth: "parts that are nested too deep were left out",
  size: "parts that are too big to declare take any value",
  effort: "references and unions that could take a host very long to check were left out",
};

/**
 * Alternatives of one union. For a value that no alternative takes, Pi's work grows with the square of their number:
 * this many take 20 ms. Constants are looked up, so there may be more of them.
 */
export const ALTERNATIVES = 200;

/** The schema with further sentences at the end of its description. */
export function withText(schema: Schema, texts: readonly string[]): Schema {
  const own = typeof schema.description === "string" ? schema.description.trimEnd() : "";
  const description = [...(own === "" ? [] : [own]), ...texts].join(" ");
  return { ...schema, description };
}

const SHOWN_TOOLS = 5;

/** One line for the log. `tools`: the tools whose schemas needed the repair. */
export function repairLine(repair: Repair, tools: readonly string[]): string {
  const shown = tools.slice(0, SHOWN_TOOLS).join(", ");
  const more = tools.length > SHOWN_TOOLS ? ` and ${tools.length - SHOWN_TOOLS} more` : "";
  return `schemas repaired, ${WORDS[repair]}: ${shown}${more}`;
}
