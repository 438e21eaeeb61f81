/**
 * Repairs every part of a schema, top down. Walks whatever may hold a schema, leaves data (`enum`, `default`,
 * ...) alone, and never looks at the names of properties as keywords.
 */
import { openReferences, type References } from "./schema-references.ts";

/** What had to be done. */
export type Repair = "root" | "union" | "reference" | "loop" | "pattern" | "keyword" | "depth";

type Schema = Record<string, unknown>;

/** As deep as a schema may be; servers' are cut off before (tool.ts), so this only ends a walk. */
const DEPTH = 64;

/** Their values are data. */
const DATA = new Set(["const", "default", "examples", "example"]);
/** Their values map names to schemas. */
export const MAPS: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"],
]);
const REFERENCES = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
const TYPES = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

export const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

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

const isSchema = (value: unknown): boolean => isObject(value) || typeof value === "boolean";
const isSchemaList = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every(isSchema);
const isType = (value: unknown): boolean => typeof value === "string" && TYPES.has(value);

/** Keywords that make a validator fail on values of another kind. */
const SOUND: Record<string, (value: unknown) => boolean> = {
  type: (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType)),
  enum: (value) => Array.isArray(value) && value.length > 0,
  required: (value) => Array.isArray(value) && value.every((name) => typeof name === "string"),
  properties: isObject,
  patternProperties: isObject,
  $defs: isObject,
  definitions: isObject,
  anyOf: isSchemaList,
  oneOf: isSchemaList,
  allOf: isSchemaList,
  not: isSchema,
  items: (value) => isSchema(value) || Array.isArray(value),
  additionalProperties: isSchema,
};

interface Walk {
  references: References;
  repaired: (repair: Repair) => void;
}

interface Place {
  depth: number;
  /** Pointer of the nearest schema with an `$id`: what its local references start from. */
  base: string;
  pointer: string;
}

const below = (place: Place, key: string): Place => ({
  depth: place.depth + 1,
  base: place.base,
  pointer: `${place.pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`,
});

/** `[key, value]` of what stays, or undefined. */
function repairEntry(
  walk: Walk,
  node: Schema,
  [key, value]: [string, unknown],
  place: Place,
): [string, unknown] | undefined {
  const { references, repaired } = walk;
  const leaveOut = (repair: Repair): undefined => {
    repaired(repair);
    return undefined;
  };
  if (DATA.has(key)) return [key, value];
  if (REFERENCES.has(key)) {
    const target = typeof value === "string" ? references.resolve(value, place.base) : undefined;
    if (target === undefined) return leaveOut("reference");
    return references.loops(node, target) ? leaveOut("loop") : [key, target];
  }
  if (key === "pattern") return isPattern(value) ? [key, value] : leaveOut("pattern");
  if (Object.hasOwn(SOUND, key) && !SOUND[key]?.(value)) return leaveOut("keyword");
  // References below have been rewritten to start from the root.
  if (key === "$id" && place.pointer !== "") return undefined;
  if (key === "enum" || key === "required" || key === "type") return [key, value];
  const at = below(place, key);
  if (!MAPS.has(key) || !isObject(value)) return [key, repairValue(walk, value, at)];
  const entries = Object.entries(value).filter(([name]) => {
    const sound = key !== "patternProperties" || isPattern(name);
    if (!sound) repaired("pattern");
    return sound;
  });
  return [
    key,
    Object.fromEntries(entries.map(([name, schema]) => [name, repairValue(walk, schema, below(at, name))])),
  ];
}

function repairValue(walk: Walk, value: unknown, place: Place): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (place.depth > DEPTH) {
    walk.repaired("depth");
    return Array.isArray(value) ? [] : {};
  }
  if (Array.isArray(value)) return value.map((item, i) => repairValue(walk, item, below(place, String(i))));
  return repairObject(walk, value as Schema, place);
}

function repairObject(walk: Walk, node: Schema, place: Place): Schema {
  const own =
    typeof node.$id === "string" && place.pointer !== "" ? { ...place, base: place.pointer } : place;
  const entries = Object.entries(node).map((entry) => repairEntry(walk, node, entry, own));
  return Object.fromEntries(entries.filter((entry) => entry !== undefined));
}

/** A copy without what hosts choke on. */
export function repairBelow(root: Schema, repaired: (repair: Repair) => void): Schema {
  return repairObject({ references: openReferences(root), repaired }, root, {
    depth: 0,
    base: "",
    pointer: "",
  });
}
