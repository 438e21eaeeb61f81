/**
 * Makes the schemas of a tool fit for hosts and providers: the root of an input schema is one object, every provider takes
 * all of it, and a host can compile it. Owns every repair. Must not change what a sound schema means, or refuse a value
 * that the server takes. Reports each repair that leaves something out or guesses what was meant. Pure. To add a repair: a
 * word in keywords.ts, its sentence beside it, and the keyword's row in keywords.ts or its branch in nodes.ts; for
 * what only some providers refuse a step in portable.ts and a row in docs/limits.md.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { STRUCTURED_POINTER } from "../../../src/shared/snapshot/snapshot.ts";
import { cleanText, cut } from "../../../src/shared/text/unprintable.ts";
import { isWithin, type Size, sizeOf } from "../../shared/json.ts";
import { PARAMETER_NAME } from "../../shared/listed.ts";
import { copiedBelow, withDefinitions, withoutDefinitions } from "./definitions.ts";
import { DATA, MAPS, type Repair, type Schema } from "./keywords.ts";
import { type RepairOptions, repairBelow } from "./nodes.ts";
import {
  holdsReference,
  isCheckedFast,
  REFERENCES,
  recursiveReferences,
  requiredLoops,
} from "./references.ts";
import { objectRoot } from "./root.ts";

/**
 * The largest schema that is declared. The largest of 2,000 real tools has 231 values and 8 KB; this much would fill a
 * third of a model's context, and takes a host 0.1 s to compile.
 */
const LARGEST: Size = { nodes: 10_000, chars: 256 * 1024 };
/** A repaired schema may be this many times as large as the server's, and `SPARE` larger for added sentences. */
const GROWTH = 3;
const SPARE: Size = { nodes: 100, chars: 8 * 1024 };

interface RepairedSchema {
  schema: Schema;
  /** Each kind once. */
  repairs: Repair[];
}

interface RepairedInputSchema extends RepairedSchema {
  /** A sentence for the tool's description: the parameters that the schema takes and does not declare. */
  undeclared?: string;
}

function limitFor(raw: unknown): Size {
  const { nodes, chars } = sizeOf(raw, LARGEST);
  return {
    nodes: Math.min(LARGEST.nodes, GROWTH * nodes + SPARE.nodes),
    chars: Math.min(LARGEST.chars, GROWTH * chars + SPARE.chars),
  };
}

/** The form that providers take of a schema whose references all lead into `$defs`. A definition may lose its last one. */
function inPortableForm(schema: Schema, note: (repair: Repair) => void, options: RepairOptions = {}): Schema {
  let isReduced = false;
  const noted = (repair: Repair): void => {
    isReduced = true;
    note(repair);
  };
  const declared = repairBelow(schema, noted, { ...options, declares: true });
  return isReduced ? withDefinitions(declared) : declared;
}

/** A sound schema in the form that providers take. */
const asDeclared = (schema: Schema, note: (repair: Repair) => void): Schema =>
  inPortableForm(withDefinitions(schema), note);

/** Leaves out references with which a host would check a value for very long: recursive ones first, then all. */
function withBoundedEffort(schema: Schema, note: (repair: Repair) => void): Schema {
  const isFast = (candidate: Schema): boolean => !holdsReference(candidate) || isCheckedFast(candidate);
  if (isFast(schema)) return schema;
  const flat = repairBelow(schema, note, { leavesOut: recursiveReferences(schema) });
  return asDeclared(isFast(flat) ? flat : repairBelow(flat, note, { leavesOut: () => true }), note);
}

/** A sound schema with references in the form that providers take. */
function withReferences(schema: Schema, isReduced: boolean, note: (repair: Repair) => void): Schema {
  // References may lead to a parameter that is no longer declared.
  const sound = isReduced ? repairBelow(schema, note) : schema;
  const declared = asDeclared(sound, note);
  const opens = requiredLoops(declared);
  return withBoundedEffort(opens ? inPortableForm(declared, note, { opens }) : declared, note);
}

/** MCP 2025-11-25, server/tools: `inputSchema` is a JSON Schema of type object. Anything else takes any object. */
export function repairInputSchema(raw: unknown): RepairedInputSchema {
  const repairs = new Set<Repair>();
  const note = (repair: Repair): void => {
    repairs.add(repair);
  };
  const limit = limitFor(raw);
  const shape = objectRoot(raw, note, limit);
  // Without references one walk does it all: no reference leads into a part that is rewritten.
  const declares = !holdsReference(shape);
  const root = repairBelow(declares ? withoutDefinitions(shape) : shape, note, { declares });
  const { schema: named, undeclared } = declareParameters(root);
  if (undeclared !== undefined) note("name");
  const schema = declares ? named : withReferences(named, undeclared !== undefined, note);
  if (!isWithin(schema, limit)) {
    note("size");
    return { schema: { type: "object", properties: {} }, repairs: [...repairs] };
  }
  return { schema, repairs: [...repairs], ...(undeclared === undefined ? {} : { undeclared }) };
}

/** Undefined for a value that is not an object. The root may have any type, and no host checks a result against it. */
export function repairOutputSchema(raw: unknown): RepairedSchema | undefined {
  if (!isObject(raw)) return undefined;
  const repairs = new Set<Repair>();
  const schema = repairBelow(raw, (repair) => repairs.add(repair));
  if (isWithin(schema, limitFor(raw))) return { schema, repairs: [...repairs] };
  return { schema: {}, repairs: [...repairs.add("size")] };
}

export const normalizeInputSchema = (schema: unknown): Schema => repairInputSchema(schema).schema;

/** Matches the JSON of a schema in which no character can need a change. */
const PLAIN = /^(?:[ !#-[\]-~]|"|\\["\\/nt])*$/;

class HiddenName extends Error {}

function nameOf(name: string): string {
  if (cleanText(name) !== name) throw new HiddenName();
  return name;
}

/** Half of a surrogate pair, as JSON writes it: Anthropic refuses a request that holds one. */
const HALF = /(?:^|[^\\])(?:\\\\)*\\ud/;

/** JSON escapes characters that a terminal acts on, but not invisible ones. */
function isSeen(value: unknown): boolean {
  const json = JSON.stringify(value);
  return cleanText(json) === json && !HALF.test(json);
}

/** The data without invisible characters; undefined if nothing is left. */
function cleanData(key: string, value: unknown): unknown {
  if (key !== "enum" || !Array.isArray(value)) return isSeen(value) ? value : undefined;
  const seen = value.filter(isSeen);
  return seen.length > 0 ? seen : undefined;
}

function cleanValue(key: string, value: unknown): unknown {
  if (DATA.has(key) || key === "pattern") return cleanData(key, value);
  if (typeof value === "string" && key.startsWith("$") && key !== "$comment") return nameOf(value);
  if (!MAPS.has(key) || !isObject(value)) return clean(value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [nameOf(name), clean(inner)]));
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return cut(cleanText(value), LIMITS.descriptionChars);
  if (Array.isArray(value)) return value.map(clean);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, inner]) => [nameOf(key), cleanValue(key, inner)] as const)
      .filter(([, kept]) => kept !== undefined),
  );
}

/** The same object if nothing has to change; undefined if a name holds invisible characters. */
export function cleanSchema(schema: Record<string, unknown>): Record<string, unknown> | undefined {
  const json = JSON.stringify(schema);
  if (json.length <= LIMITS.descriptionChars && PLAIN.test(json)) return schema;
  try {
    return clean(schema) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof HiddenName) return undefined;
    throw error;
  }
}

/** A copy whose references start at `STRUCTURED_POINTER`. */
export function moveReferences(schema: Schema): Schema {
  const entries = Object.entries(copiedBelow(schema, moveReferences)).map(
    ([key, value]): [string, unknown] =>
      REFERENCES.has(key) && typeof value === "string"
        ? [key, STRUCTURED_POINTER + value.slice(1)]
        : [key, value],
  );
  return Object.fromEntries(entries);
}

const SHOWN = 20;
/** A longer name is not shown: nobody would write it out. */
const NAME_CHARS = 200;

/** Keywords that would forbid or judge the parameters that are no longer declared. */
const JUDGE_OTHERS = ["additionalProperties", "unevaluatedProperties"];

interface DeclaredSchema {
  schema: Schema;
  /** A sentence for the description of the tool; absent if every parameter is declared. */
  undeclared?: string;
}

/** For example `"filter[name]" (string, required)`. */
function describe(name: string, schema: unknown, isRequired: boolean): string {
  const type = isObject(schema) && typeof schema.type === "string" ? [schema.type] : [];
  const words = [...type, ...(isRequired ? ["required"] : [])];
  return JSON.stringify(name) + (words.length > 0 ? ` (${words.join(", ")})` : "");
}

/** Moves parameters with refused names out of the schema. `root`: a repaired input schema. */
function declareParameters(root: Schema): DeclaredSchema {
  const properties = isObject(root.properties) ? root.properties : {};
  const names = Object.keys(properties).filter((name) => !PARAMETER_NAME.test(name));
  if (names.length === 0) return { schema: root };
  const hidden = new Set(names);
  const required = Array.isArray(root.required) ? (root.required as string[]) : [];
  const entries = Object.entries(root).flatMap(([key, value]): [string, unknown][] => {
    if (key === "properties") {
      return [[key, Object.fromEntries(Object.entries(properties).filter(([name]) => !hidden.has(name)))]];
    }
    if (key === "required") return [[key, required.filter((name) => !hidden.has(name))]];
    return JUDGE_OTHERS.includes(key) ? [] : [[key, value]];
  });
  const shown = names.filter((name) => name.length <= NAME_CHARS).slice(0, SHOWN);
  const words = shown.map((name) => describe(name, properties[name], required.includes(name)));
  if (shown.length < names.length) words.push(`${names.length - shown.length} more`);
  return { schema: Object.fromEntries(entries), undeclared: `Also takes ${words.join(", ")}.` };
}
