/**
 * Repairs every part of a schema, top down, by the table of keywords. Data (`default`, ...) stays as it is, and names
 * of properties are never read as keywords. A part that is left out makes the schema take more values, never fewer: the
 * schema around it is loosened if the opposite would follow, for example below a `not`.
 */

import { isObject } from "../../../src/shared/protocol/values.ts";
import { DEFINITIONS } from "./definitions.ts";
import type { PatternUse } from "./engines.ts";
import {
  ALTERNATIVES,
  DATA,
  HOLDERS,
  type Holder,
  hasFlagLimits,
  isMapBelow,
  isSchema,
  LOOSENS,
  type Repair,
  type Schema,
  soundNames,
  VALUES,
  withNumericLimits,
  withText,
} from "./keywords.ts";
import { isLeftToServer, openPatterns, type Patterns } from "./patterns.ts";
import { inWords, portable } from "./portable.ts";
import { holdsReference, openReferences, pointerToken, REFERENCES, type References } from "./references.ts";

/** The deepest schema that is walked. workers/shared/listed.ts refuses deeper schemas of servers before, so this only ends a walk. */
const DEPTH = 64;
/** Repairs in a row: a part that is left out may be the target of a reference, whose removal may take another target. */
const ROUNDS = 4;

const isWide = (parts: readonly unknown[]): boolean =>
  parts.length > ALTERNATIVES && !parts.every((part) => isObject(part) && Object.hasOwn(part, "const"));

/** Whether the sound references that a schema itself holds are left out, because checking them would take too long. */
type LeavesOut = (node: Schema) => boolean;

/** Keywords that name properties. Other keywords judge only the properties without a name. */
const NAMING = new Set(["properties", "patternProperties"]);

export interface RepairOptions {
  /** Providers get the schema, and no reference leads into a part that `portable` rewrites. */
  declares?: boolean;
  leavesOut?: LeavesOut;
  /** Whether a name is no longer required, because no provider could give an end to what the name leads to. */
  opens?: (node: Schema, name: string) => boolean;
}

interface Walk extends Required<RepairOptions> {
  references: References;
  patterns: Patterns;
  repaired: (repair: Repair) => void;
  /** Number of parts that were left out so far. */
  loosenings: () => number;
  /** A part was left out in an earlier round, so a reference may lead to its former position. */
  wasLoosened: boolean;
}

/** The position of the walk in the schema. */
interface Cursor {
  depth: number;
  /** Pointer of the nearest schema with an `$id`. Local references start from it. */
  base: string;
  pointer: string;
  /** True below a keyword that JSON Schema does not define: a key there may be a name and not a keyword. */
  isForeign: boolean;
}

const below = (cursor: Cursor, key: string, isForeign = false): Cursor => ({
  depth: cursor.depth + 1,
  base: cursor.base,
  pointer: `${cursor.pointer}/${pointerToken(key)}`,
  isForeign,
});

/** The repaired value of a keyword; undefined if the keyword is left out. */
function repairEntry(walk: Walk, node: Schema, key: string, value: unknown, cursor: Cursor): unknown {
  const { references, repaired } = walk;
  const leaveOut = (repair: Repair): undefined => {
    repaired(repair);
    return undefined;
  };
  // Those that a reference leads to stand at the root.
  if (walk.declares && cursor.pointer !== "" && DEFINITIONS.has(key)) return undefined;
  const holder = HOLDERS.get(key);
  if (holder !== undefined) return repairHeld(walk, holder, key, value, cursor);
  if (REFERENCES.has(key)) {
    const target = typeof value === "string" ? references.resolve(value, cursor.base) : undefined;
    if (target === undefined) return leaveOut("reference");
    if (walk.leavesOut(node)) return leaveOut("effort");
    // What is declared has been repaired before, and its rewriting makes no loop.
    return !walk.declares && references.loops(node, target) ? leaveOut("loop") : target;
  }
  if (key === "pattern") {
    const judgement = walk.patterns.judge(value, "value");
    return judgement === "sound" ? value : leaveOut(judgement);
  }
  const mend = cursor.isForeign && isObject(value) ? undefined : VALUES.get(key);
  if (mend) {
    const mended = mend(value);
    if (mended === undefined) return leaveOut("keyword");
    // References below have been rewritten to start from the root.
    if (key === "$id" && cursor.pointer !== "") return undefined;
    if (mended !== value) repaired("value");
    return key === "required" ? stillRequired(walk, node, mended as readonly string[]) : mended;
  }
  return DATA.has(key) ? value : repairForeign(walk, value, below(cursor, key, true));
}

function stillRequired({ opens, repaired }: Walk, node: Schema, names: readonly string[]): unknown {
  const kept = names.filter((name) => !opens(node, name));
  if (kept.length === names.length) return names;
  repaired("circle");
  return kept.length > 0 ? kept : undefined;
}

/** The repaired schemas below a keyword; undefined if the keyword is left out. */
function repairHeld(walk: Walk, holder: Holder, key: string, value: unknown, cursor: Cursor): unknown {
  if (isSchema(value)) {
    if (holder === "schema" || holder === "items") return repairSchema(walk, value, below(cursor, key), key);
    if (isObject(value)) {
      if (isMapBelow(holder, value, cursor.isForeign)) return repairMap(walk, holder, key, value, cursor);
      if (cursor.isForeign) return repairForeign(walk, value, below(cursor, key, true));
    }
  } else if (Array.isArray(value)) {
    const at = below(cursor, key);
    const repairAll = (list: unknown[]): unknown[] =>
      list.map((item, i) => repairSchema(walk, item, below(at, String(i)), key));
    if (holder === "items" || (holder === "tuple" && value.length > 0)) return repairAll(value);
    const sound = value.filter(isSchema);
    const isWhole = sound.length === value.length;
    if (holder === "union" && isWide(sound)) {
      walk.repaired("effort");
      return undefined;
    }
    if (sound.length > 0 && (holder === "all" || (holder === "union" && isWhole))) {
      if (!isWhole) walk.repaired("keyword");
      return repairAll(sound);
    }
  }
  walk.repaired("keyword");
  return undefined;
}

function repairMap(walk: Walk, holder: Holder, key: string, map: Schema, cursor: Cursor): Schema {
  const at = below(cursor, key);
  const entries: [string, unknown][] = [];
  for (const [name, value] of Object.entries(map)) {
    const judgement = key === "patternProperties" ? walk.patterns.judge(name, "name") : "sound";
    if (judgement !== "sound") {
      walk.repaired(judgement);
      continue;
    }
    if (holder === "dependencies" && Array.isArray(value)) {
      const names = soundNames(value);
      if (names !== value) walk.repaired("value");
      entries.push([name, names]);
    } else {
      entries.push([name, repairSchema(walk, value, below(at, name), key)]);
    }
  }
  return Object.fromEntries(entries);
}

/**
 * Repairs a value where a schema must stand, directly below a keyword. A value that is not a schema becomes one that says
 * nothing either.
 */
function repairSchema(walk: Walk, value: unknown, cursor: Cursor, keyword: string): unknown {
  if (!isSchema(value)) walk.repaired("schema");
  const schema =
    typeof value === "boolean" ? value : isObject(value) ? repairForeign(walk, value, cursor) : {};
  return walk.declares ? inWords(keyword, schema) : schema;
}

/** Repairs a value that may be a schema or hold schemas. */
function repairForeign(walk: Walk, value: unknown, cursor: Cursor): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (cursor.depth > DEPTH) {
    walk.repaired("depth");
    return Array.isArray(value) ? [] : {};
  }
  if (!Array.isArray(value)) return repairObject(walk, value as Schema, cursor);
  return value.map((item, i) => repairForeign(walk, item, below(cursor, String(i), true)));
}

/** The number of names in a map. A value that is not a map counts as one name, since it may have been meant as some. */
const countOf = (map: unknown): number =>
  isObject(map) ? Object.keys(map).length : map === undefined ? 0 : 1;

function repairObject(walk: Walk, raw: Schema, cursor: Cursor): Schema {
  const sound = rewritten(raw, walk.repaired);
  const node = walk.declares && !cursor.isForeign ? portable(sound, walk.repaired) : sound;
  const own =
    typeof node.$id === "string" && cursor.pointer !== "" ? { ...cursor, base: cursor.pointer } : cursor;
  const entries: [string, unknown][] = [];
  const loose: LooseParts = { below: new Set(), names: false };
  for (const [key, value] of Object.entries(node)) {
    const before = walk.loosenings();
    const kept = repairEntry(walk, raw, key, value, own);
    if (kept !== undefined) entries.push([key, kept]);
    if (walk.loosenings() === before) continue;
    loose.below.add(key);
    if (NAMING.has(key) && countOf(kept) < countOf(value)) loose.names = true;
  }
  const schema = Object.fromEntries(entries);
  const texts = patternTexts(walk.patterns, node);
  const described = texts.length > 0 ? withText(schema, texts) : schema;
  return loose.below.size > 0 || walk.wasLoosened ? loosened(described, loose, walk) : described;
}

/** A repaired copy, which hosts can compile. Each repair is reported. */
export function repairBelow(
  root: Schema,
  repaired: (repair: Repair) => void,
  { declares = false, leavesOut = () => false, opens = () => false }: RepairOptions = {},
): Schema {
  let isRepaired = false;
  let loosenings = 0;
  const note = (repair: Repair): void => {
    isRepaired = true;
    if (LOOSENS.has(repair)) loosenings++;
    repaired(repair);
  };
  const patterns = openPatterns(declares);
  const repairOnce = (schema: Schema): Schema => {
    const walk: Walk = {
      references: openReferences(schema),
      patterns,
      declares,
      leavesOut,
      opens,
      repaired: note,
      loosenings: () => loosenings,
      wasLoosened: loosenings > 0,
    };
    isRepaired = false;
    return repairObject(walk, schema, { depth: 0, base: "", pointer: "", isForeign: false });
  };
  let schema = repairOnce(root);
  // References may lead to a part that was left out.
  for (let round = 0; isRepaired && round < ROUNDS; round++) schema = repairOnce(schema);
  return schema;
}

/** Where parts of a schema were left out. */
interface LooseParts {
  /** Keywords that were left out, or that hold a part that was. */
  below: Set<string>;
  /** True if names of properties, or patterns of names, are gone. */
  names: boolean;
}

interface Loosening {
  /** A part was left out elsewhere, and a reference may lead to its former position. */
  wasLoosened: boolean;
  repaired: (repair: "choice") => void;
}

/** A condition and its branches: without the condition the branches mean nothing. */
const CONDITION = ["if", "then", "else"] as const;
/** Keywords that judge the properties without a name in the same schema. */
const JUDGES_OTHERS = ["additionalProperties", "unevaluatedProperties"] as const;
/** Keywords that judge the properties and items that no other part of the schema judged. */
const JUDGES_REST = ["unevaluatedProperties", "unevaluatedItems"] as const;

/** The schema without the keywords that would now refuse more than before; the same object if nothing has to change. */
function loosened(schema: Schema, parts: LooseParts, { wasLoosened, repaired }: Loosening): Schema {
  const isLoose = (key: string): boolean =>
    Object.hasOwn(schema, key) && (parts.below.has(key) || (wasLoosened && holdsReference(schema[key])));
  const gone = new Set<string>();
  // With less below it, `not` would refuse everything, or more than before.
  if (isLoose("not")) gone.add("not");
  if (isLoose("if")) for (const key of CONDITION) gone.add(key);
  if (parts.names) for (const key of JUDGES_OTHERS) gone.add(key);
  // A looser `contains` counts more items.
  if (isLoose("contains")) gone.add("maxContains");
  const judgesRest = JUDGES_REST.some((key) => Object.hasOwn(schema, key));
  if (judgesRest && (parts.below.size > 0 || holdsReference(schema)))
    for (const key of JUDGES_REST) gone.add(key);
  const entries = Object.entries(schema).filter(([key, value]) => !(gone.has(key) && value !== true));
  // Several alternatives may now take the same value, so `oneOf` becomes `anyOf`.
  const becomesAny = isLoose("oneOf");
  const changed = becomesAny || entries.length < Object.keys(schema).length;
  if (!changed) return schema;
  repaired("choice");
  if (!becomesAny) return Object.fromEntries(entries);
  if (!Object.hasOwn(schema, "anyOf")) {
    return Object.fromEntries(entries.map(([key, value]) => [key === "oneOf" ? "anyOf" : key, value]));
  }
  const either = { anyOf: schema.oneOf };
  const all = Array.isArray(schema.allOf) ? schema.allOf : [];
  return { ...Object.fromEntries(entries.filter(([key]) => key !== "oneOf")), allOf: [...all, either] };
}

/** Replaces what only another draft reads as it is meant, and drops a `$ref` in the place of `properties`. */
function rewritten(node: Schema, repaired: (repair: Repair) => void): Schema {
  let schema = node;
  if (hasFlagLimits(schema)) {
    repaired("value");
    schema = withNumericLimits(schema);
  }
  if (isObject(schema.properties) && typeof schema.properties.$ref === "string") {
    repaired("reference");
    const { $ref: _reference, ...properties } = schema.properties;
    schema = { ...schema, properties };
    // The properties behind that reference are unknown, so a closed schema would refuse them.
    for (const key of ["additionalProperties", "unevaluatedProperties"]) {
      if (schema[key] === false) delete schema[key];
    }
  }
  return schema;
}

/** Sentences for the description: the patterns of the schema that only the server checks. */
function patternTexts(patterns: Patterns, { pattern, patternProperties, propertyNames }: Schema): string[] {
  const names = isObject(patternProperties) ? Object.keys(patternProperties) : [];
  const ofNames = isObject(propertyNames) ? propertyNames.pattern : undefined;
  const sentence = (source: unknown, words: string, use: PatternUse = "value"): string[] => {
    if (typeof source !== "string" || !isLeftToServer(patterns.judge(source, use))) return [];
    const shown = patterns.show(source);
    return shown === undefined ? [] : [`${words} ${shown}.`];
  };
  return [
    ...sentence(pattern, "Must match"),
    ...sentence(ofNames, "Names must match"),
    ...names.flatMap((name) => sentence(name, "Takes names that match", "name")),
  ];
}
