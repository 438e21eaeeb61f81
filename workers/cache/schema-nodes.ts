/**
 * Repairs every part of a schema, top down, by the table of keywords. Leaves data (`default`, ...) alone, and
 * never looks at the names of properties as keywords.
 */
import { isObject } from "../../src/protocol/is-object.ts";
import {
  HOLDERS,
  type Holder,
  hasFlagLimits,
  isSchema,
  soundNames,
  VALUES,
  withNumericLimits,
} from "./schema-keywords.ts";
import { openReferences, type References } from "./schema-references.ts";

/** What had to be done. */
export type Repair =
  | ("root" | "union" | "name" | "reference" | "loop" | "pattern")
  | ("keyword" | "value" | "schema" | "depth");

type Schema = Record<string, unknown>;

/** As deep as a schema may be; servers' are cut off before (tool.ts), so this only ends a walk. */
const DEPTH = 64;
/** What is left out may leave a reference without its target, and that another. */
const ROUNDS = 4;

/** Their values are data. */
const DATA = new Set(["const", "default", "examples", "example", "enum"]);
const REFERENCES = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

/** As Pi's validator reads patterns. */
function isPattern(text: unknown): boolean {
  if (typeof text !== "string") return false;
  try {
    new RegExp(text, "u");
    return true;
  } catch {
    return false;
  }
}

interface Walk {
  references: References;
  repaired: (repair: Repair) => void;
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
  pointer: `${place.pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
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
    return references.loops(node, target) ? leaveOut("loop") : target;
  }
  if (key === "pattern") return isPattern(value) ? value : leaveOut("pattern");
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
      if (holder === "map" || holder === "dependencies") return repairMap(walk, holder, key, value, place);
      if (place.isForeign) return repairForeign(walk, value, below(place, key, true));
    }
  } else if (Array.isArray(value)) {
    const at = below(place, key);
    const repairAll = (list: unknown[]): unknown[] =>
      list.map((item, i) => repairSchema(walk, item, below(at, String(i))));
    if (holder === "items" || (holder === "tuple" && value.length > 0)) return repairAll(value);
    const sound = value.filter(isSchema);
    const isWhole = sound.length === value.length;
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
    if (key === "patternProperties" && !isPattern(name)) {
      walk.repaired("pattern");
    } else if (holder === "dependencies" && Array.isArray(value)) {
      const names = soundNames(value);
      if (names !== value) walk.repaired("value");
      entries.push([name, names]);
    } else if (place.isForeign && !isSchema(value)) {
      entries.push([name, value]);
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

function repairObject(walk: Walk, raw: Schema, place: Place): Schema {
  const node = rewritten(walk, raw);
  const own =
    typeof node.$id === "string" && place.pointer !== "" ? { ...place, base: place.pointer } : place;
  const entries: [string, unknown][] = [];
  for (const [key, value] of Object.entries(node)) {
    const kept = repairEntry(walk, raw, key, value, own);
    if (kept !== undefined) entries.push([key, kept]);
  }
  return Object.fromEntries(entries);
}

/** A copy without what hosts choke on. */
export function repairBelow(root: Schema, repaired: (repair: Repair) => void): Schema {
  let isRepaired = false;
  const note = (repair: Repair): void => {
    isRepaired = true;
    repaired(repair);
  };
  const repairOnce = (schema: Schema): Schema => {
    isRepaired = false;
    const walk = { references: openReferences(schema), repaired: note };
    return repairObject(walk, schema, { depth: 0, base: "", pointer: "", isForeign: false });
  };
  let schema = repairOnce(root);
  // References may lead to what was left out.
  for (let round = 0; isRepaired && round < ROUNDS; round++) schema = repairOnce(schema);
  return schema;
}
