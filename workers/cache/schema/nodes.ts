/**
 * Repairs every part of a schema, top down, by the table of keywords. Leaves data (`default`, ...) alone, and
 * never looks at the names of properties as keywords. What is left out makes the schema take more, never less:
 * what stands around it is loosened where that would be otherwise, as below a `not`.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import {
  DATA,
  HOLDERS,
  type Holder,
  hasFlagLimits,
  isMapBelow,
  isSchema,
  soundNames,
  VALUES,
  withNumericLimits,
} from "./keywords.ts";
import { type LooseParts, loosened, withText } from "./loosen.ts";
import { openPatterns, type Patterns } from "./patterns/patterns.ts";
import { openReferences, pointerToken, REFERENCES, type References } from "./references.ts";

/** What had to be done. */
export type Repair =
  | ("root" | "union" | "name" | "reference" | "loop" | "pattern" | "slow")
  | ("keyword" | "value" | "schema" | "choice" | "depth" | "size" | "effort");

type Schema = Record<string, unknown>;

/** As deep as a schema may be; servers' are cut off before (tool.ts), so this only ends a walk. */
const DEPTH = 64;
/** What is left out may leave a reference without its target, and that another. */
const ROUNDS = 4;

/**
 * Alternatives of one union. For a value that none of them takes, Pi asks each of them again for each of them:
 * this many take it 20 ms. Constants are looked up, so they may be more.
 */
const ALTERNATIVES = 200;
const isWide = (parts: readonly unknown[]): boolean =>
  parts.length > ALTERNATIVES && !parts.every((part) => isObject(part) && Object.hasOwn(part, "const"));

/** After these the schema takes more than it says, which turns what stands below a `not` around. */
const LOOSENS: ReadonlySet<Repair> = new Set([
  ...(["reference", "loop", "pattern", "slow", "keyword", "schema", "depth", "effort"] as const),
]);

/** Whether the references that a schema holds itself are left out, though they are sound. */
export type LeavesOut = (node: Schema) => boolean;

/** Keywords that name the properties which others then do not judge. */
const NAMING = new Set(["properties", "patternProperties"]);

interface Walk {
  references: References;
  patterns: Patterns;
  leavesOut: LeavesOut;
  repaired: (repair: Repair) => void;
  /** How often something was left out so far. */
  loosenings: () => number;
  /** Something was left out in an earlier round: a reference may lead to where it was. */
  wasLoosened: boolean;
}

interface Place {
  depth: number;
  /** Pointer of the nearest schema with an `$id`: what its local references start from. */
  base: string;
  pointer: string;
  /** Below a keyword that is none of JSON Schema's: what looks like a keyword may be a name there. */
  isForeign: boolean;
}

const below = (place: Place, key: string, isForeign = false): Place => ({
  depth: place.depth + 1,
  base: place.base,
  pointer: `${place.pointer}/${pointerToken(key)}`,
  isForeign,
});

/** What stays of a keyword's value; undefined: nothing. */
function repairEntry(walk: Walk, node: Schema, key: string, value: unknown, place: Place): unknown {
  const { references, repaired } = walk;
  const leaveOut = (repair: Repair): undefined => {
    repaired(repair);
    return undefined;
  };
  const holder = HOLDERS.get(key);
  if (holder !== undefined) return repairHeld(walk, holder, key, value, place);
  if (REFERENCES.has(key)) {
    const target = typeof value === "string" ? references.resolve(value, place.base) : undefined;
    if (target === undefined) return leaveOut("reference");
    if (walk.leavesOut(node)) return leaveOut("effort");
    return references.loops(node, target) ? leaveOut("loop") : target;
  }
  if (key === "pattern") {
    const judgement = walk.patterns.judge(value);
    if (judgement === "sound") return value;
    return leaveOut(judgement === "slow" ? "slow" : "pattern");
  }
  const mend = place.isForeign && isObject(value) ? undefined : VALUES.get(key);
  if (mend) {
    const mended = mend(value);
    if (mended === undefined) return leaveOut("keyword");
    // References below have been rewritten to start from the root.
    if (key === "$id" && place.pointer !== "") return undefined;
    if (mended !== value) repaired("value");
    return mended;
  }
  return DATA.has(key) ? value : repairForeign(walk, value, below(place, key, true));
}

/** What stays of the schemas below a keyword; undefined: nothing. */
function repairHeld(walk: Walk, holder: Holder, key: string, value: unknown, place: Place): unknown {
  if (isSchema(value)) {
    if (holder === "schema" || holder === "items") return repairSchema(walk, value, below(place, key));
    if (isObject(value)) {
      if (isMapBelow(holder, value, place.isForeign)) return repairMap(walk, holder, key, value, place);
      if (place.isForeign) return repairForeign(walk, value, below(place, key, true));
    }
  } else if (Array.isArray(value)) {
    const at = below(place, key);
    const repairAll = (list: unknown[]): unknown[] =>
      list.map((item, i) => repairSchema(walk, item, below(at, String(i))));
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

function repairMap(walk: Walk, holder: Holder, key: string, map: Schema, place: Place): Schema {
  const at = below(place, key);
  const entries: [string, unknown][] = [];
  for (const [name, value] of Object.entries(map)) {
    const judgement = key === "patternProperties" ? walk.patterns.judge(name) : "sound";
    if (judgement !== "sound") {
      walk.repaired(judgement === "slow" ? "slow" : "pattern");
      continue;
    }
    if (holder === "dependencies" && Array.isArray(value)) {
      const names = soundNames(value);
      if (names !== value) walk.repaired("value");
      entries.push([name, names]);
    } else {
      entries.push([name, repairSchema(walk, value, below(at, name))]);
    }
  }
  return Object.fromEntries(entries);
}

/** Where a schema belongs: what is none says nothing, so it becomes the schema that does. */
function repairSchema(walk: Walk, value: unknown, place: Place): unknown {
  if (typeof value === "boolean") return value;
  if (isObject(value)) return repairForeign(walk, value, place);
  walk.repaired("schema");
  return {};
}

/** Whatever may be a schema or hold some. */
function repairForeign(walk: Walk, value: unknown, place: Place): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (place.depth > DEPTH) {
    walk.repaired("depth");
    return Array.isArray(value) ? [] : {};
  }
  if (!Array.isArray(value)) return repairObject(walk, value as Schema, place);
  return value.map((item, i) => repairForeign(walk, item, below(place, String(i), true)));
}

/** Without what only another draft, or nobody, reads as it is meant. */
function rewritten(walk: Walk, node: Schema): Schema {
  let schema = node;
  if (hasFlagLimits(schema)) {
    walk.repaired("value");
    schema = withNumericLimits(schema);
  }
  if (isObject(schema.properties) && typeof schema.properties.$ref === "string") {
    walk.repaired("reference");
    const { $ref: _reference, ...properties } = schema.properties;
    schema = { ...schema, properties };
    // The properties that it was to lead to are not known.
    for (const key of ["additionalProperties", "unevaluatedProperties"]) {
      if (schema[key] === false) delete schema[key];
    }
  }
  return schema;
}

/** What the schema says in words where its patterns are left to the server. */
function patternTexts({ patterns }: Walk, { pattern, patternProperties, propertyNames }: Schema): string[] {
  const names = isObject(patternProperties) ? Object.keys(patternProperties) : [];
  const ofNames = isObject(propertyNames) ? propertyNames.pattern : undefined;
  const told = (source: unknown, words: string): string[] => {
    if (typeof source !== "string" || patterns.judge(source) !== "slow") return [];
    const shown = patterns.show(source);
    return shown === undefined ? [] : [`${words} ${shown}.`];
  };
  return [
    ...told(pattern, "Must match the pattern"),
    ...told(ofNames, "Names must match the pattern"),
    ...names.flatMap((name) => told(name, "Takes names that match the pattern")),
  ];
}

/** Names of a map; what is no map may have been meant to name some. */
const countOf = (map: unknown): number =>
  isObject(map) ? Object.keys(map).length : map === undefined ? 0 : 1;

function repairObject(walk: Walk, raw: Schema, place: Place): Schema {
  const node = rewritten(walk, raw);
  const own =
    typeof node.$id === "string" && place.pointer !== "" ? { ...place, base: place.pointer } : place;
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
  const texts = patternTexts(walk, node);
  const told = texts.length > 0 ? withText(schema, texts) : schema;
  return loose.below.size > 0 || walk.wasLoosened ? loosened(told, loose, walk) : told;
}

/** A copy without what hosts choke on. */
export function repairBelow(
  root: Schema,
  repaired: (repair: Repair) => void,
  leavesOut: LeavesOut = () => false,
): Schema {
  let isRepaired = false;
  let loosenings = 0;
  const note = (repair: Repair): void => {
    isRepaired = true;
    if (LOOSENS.has(repair)) loosenings++;
    repaired(repair);
  };
  const patterns = openPatterns();
  const repairOnce = (schema: Schema): Schema => {
    const walk: Walk = {
      references: openReferences(schema),
      patterns,
      leavesOut,
      repaired: note,
      loosenings: () => loosenings,
      wasLoosened: loosenings > 0,
    };
    isRepaired = false;
    return repairObject(walk, schema, { depth: 0, base: "", pointer: "", isForeign: false });
  };
  let schema = repairOnce(root);
  // References may lead to what was left out.
  for (let round = 0; isRepaired && round < ROUNDS; round++) schema = repairOnce(schema);
  return schema;
}
