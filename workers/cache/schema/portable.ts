/**
 * Rewrites one part of a schema in the form that every provider takes; docs/limits.md says which provider refuses
 * what. The part then means the same or takes more, and the server still checks the arguments: what the form cannot say goes
 * into the description, in few words. Knows neither the parts below nor the references of the schema. Pure.
 */
import { isObject } from "../../../src/shared/protocol/values.ts";
import { typeOf } from "../../../src/shared/text/signature.ts";
import { oneLine } from "../../../src/shared/text/unprintable.ts";
import { PARAMETER_NAME } from "../../shared/listed.ts";
import { REPETITIONS } from "./engines.ts";
import { ALTERNATIVES, isSchema, type Repair, type Schema, soundType, withText } from "./keywords.ts";

type Note = (repair: Repair) => void;

/** Takes any value. llama.cpp reads `{}` as "an object", and no provider takes `true` in every place. */
const anyValue = (): Schema => ({ description: "Any value." });

/** Keywords below which llama.cpp and Moonshot take objects alone. */
const OBJECTS_BELOW: ReadonlySet<string> = new Set(["properties", "$defs", "items", "anyOf", "oneOf"]);

const saysNothing = (schema: unknown): boolean =>
  schema === true || (isObject(schema) && Object.keys(schema).length === 0);

/** The schema that stands directly below a keyword, as an object that says what it takes. */
export function inWords(keyword: string, schema: unknown): unknown {
  if (keyword === "additionalProperties") return saysNothing(schema) ? true : schema;
  if (!OBJECTS_BELOW.has(keyword)) return schema;
  if (schema === false) return { not: {} };
  return saysNothing(schema) ? anyValue() : schema;
}

const typesOf = (node: Schema): readonly unknown[] => {
  const type = soundType(node.type);
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
};

/** Positions of a list that the description names. */
const POSITIONS = 10;
const LABEL_CHARS = 60;

/** The few words that a schema has for the model, apart from its keywords. */
function labelOf(part: unknown): string | undefined {
  if (!isObject(part)) return undefined;
  const text = [part.title, part.description].find((one) => typeof one === "string" && one.trim() !== "");
  return typeof text === "string" && text.length <= LABEL_CHARS ? oneLine(text, LABEL_CHARS) : undefined;
}

function positionWord(part: unknown): string {
  const name = isObject(part) && typeof part.$ref === "string" ? part.$ref.split("/").at(-1) : undefined;
  const type = oneLine(name ?? typeOf(part, 2), LABEL_CHARS);
  const label = labelOf(part);
  return label === undefined ? type : `${type} (${label})`;
}

const withoutLabel = (part: unknown): unknown => {
  if (!isObject(part) || labelOf(part) === undefined) return part;
  const { title: _title, description: _description, ...rest } = part;
  return rest;
};

/** Each schema once. */
function distinctSchemas(parts: readonly unknown[]): unknown[] {
  return [...new Map(parts.map((part) => [JSON.stringify(part), part])).values()];
}

/** The schemas by position of a list, and the schema of the items behind them (undefined: any). */
function positionsOf({
  prefixItems,
  items,
  additionalItems,
}: Schema): { parts: unknown[]; rest: unknown } | undefined {
  if (Array.isArray(prefixItems))
    return { parts: prefixItems, rest: Array.isArray(items) ? undefined : items };
  if (Array.isArray(items)) return { parts: items, rest: additionalItems };
  return items === false ? { parts: [], rest: false } : undefined;
}

/** Schemas by position become one schema for every item. */
function withOneItem(node: Schema, note: Note): Schema {
  const positions = positionsOf(node);
  if (!positions) return node;
  note("tuple");
  const { rest } = positions;
  // A value that is not a schema says nothing.
  const parts = positions.parts.map((part) => (isSchema(part) ? part : true));
  const {
    prefixItems: _prefix,
    items: _items,
    additionalItems: _rest,
    unevaluatedItems: _other,
    ...others
  } = node;
  const most = Number.isInteger(others.maxItems) ? Math.max(0, others.maxItems as number) : Infinity;
  const isClosed = rest === false;
  const all = isClosed || most <= parts.length ? parts : [...parts, rest ?? true];
  const shown = parts.slice(0, POSITIONS).map(positionWord);
  const given = all.filter((part) => part !== false);
  const possible = distinctSchemas(parts.length > POSITIONS ? given : given.map(withoutLabel));
  const isAny = possible.length === 0 || possible.length > ALTERNATIVES || possible.some(saysNothing);
  const items = isAny ? anyValue() : possible.length === 1 ? possible[0] : { anyOf: possible };
  const sound = {
    ...others,
    items,
    ...(isClosed ? { maxItems: Math.min(most, parts.length) } : {}),
  };
  if (new Set(shown).size < 2 && possible.length < 2 && !parts.some(labelOf)) return sound;
  if (parts.length > POSITIONS) shown.push("…");
  else if (isObject(rest)) shown.push(`then ${positionWord(rest)}`);
  return withText(sound, [`By position: ${shown.join(", ")}.`]);
}

/** OpenAI refuses a list without a schema of its items. */
function withItems(node: Schema): Schema {
  return typesOf(node).includes("array") ? { ...node, items: anyValue() } : node;
}

const isWithinType = (own: unknown, types: readonly unknown[]): boolean =>
  types.includes(own) || (own === "integer" && types.includes("number"));

/** The part of a union, for values of these types alone where it says so. */
function withTypes(part: unknown, types: readonly unknown[], note: Note): unknown {
  const type = types.length === 1 ? types[0] : types;
  if (saysNothing(part)) return { type };
  if (!isObject(part)) return part;
  const own = typesOf(part);
  if (own.length === 0 && typeof part.$ref !== "string") {
    const { type: _unsound, ...rest } = part;
    return { type, ...rest };
  }
  const both = own.filter((one) => isWithinType(one, types));
  if (own.length > 0 && both.length === own.length) return part;
  if (both.length === 0) {
    note("type");
    return part;
  }
  return { ...part, type: both.length === 1 ? both[0] : both };
}

const unionOf = (node: Schema): "anyOf" | "oneOf" | undefined =>
  Array.isArray(node.anyOf) ? "anyOf" : Array.isArray(node.oneOf) ? "oneOf" : undefined;

/** Moonshot refuses a type beside `anyOf`: each part of the union gets it. */
function withTypesInUnion(node: Schema, note: Note): Schema {
  const key = unionOf(node);
  const types = typesOf(node);
  if (key === undefined || types.length === 0) return node;
  const { type: _type, ...rest } = node;
  return { ...rest, [key]: (node[key] as unknown[]).map((part) => withTypes(part, types, note)) };
}

const typeOfValue = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value;
};

/** Moonshot refuses listed values without a type, and a value of another type than the one beside it. */
function withTypeOfValues(node: Schema, note: Note): Schema {
  const { type: _type, enum: values, ...rest } = node;
  if (!Array.isArray(values) || values.length === 0 || node.anyOf !== undefined || node.oneOf !== undefined) {
    return node;
  }
  const types = typesOf(node);
  const fitting = values.filter((value) => isWithinType(typeOfValue(value), types));
  if (fitting.length === values.length) return node;
  if (fitting.length > 0) return { ...node, enum: fitting };
  // No value is of the type, so the values are meant.
  if (types.length > 0) note("type");
  const found = new Set(values.map(typeOfValue));
  if (found.has("number")) found.delete("integer");
  const [first, second] = found;
  if (found.size > 2 || (found.size === 2 && !found.has("null"))) return { ...rest, enum: values };
  return { type: second === undefined ? first : [first, second], ...rest, enum: values };
}

const namesOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];

const ONLY_REQUIRES: ReadonlySet<string> = new Set(["required", "type", "title", "description"]);
/** Characters of the words about required parameters. */
const NEEDS_CHARS = 200;

/** Moonshot refuses names without a schema beside them, and llama.cpp reads no properties beside a union. */
function withNeedsInWords(node: Schema, note: Note): Schema {
  const key = unionOf(node);
  if (key === undefined || !isObject(node.properties)) return node;
  const parts = node[key] as unknown[];
  const onlyRequires = (part: unknown): boolean =>
    isObject(part) &&
    Object.keys(part).every((one) => ONLY_REQUIRES.has(one)) &&
    (part.type === undefined || typesOf(part).includes("object"));
  if (!parts.every(onlyRequires)) return node;
  note("needs");
  const { [key]: _union, ...rest } = node;
  const needs = parts.map((part) => namesOf((part as Schema).required).join(" and "));
  if (needs.includes("")) return rest;
  const words = oneLine(`Needs ${needs.join(key === "oneOf" ? ", or else " : ", or ")}`, NEEDS_CHARS);
  return withText(rest, [`${words}.`]);
}

/** Moonshot and Gemini refuse a required name without a schema. */
function withRequired(node: Schema, note: Note): Schema {
  const properties = isObject(node.properties) ? node.properties : {};
  if (!isObject(node.properties) && !typesOf(node).includes("object")) return node;
  const names = namesOf(node.required);
  const missing = names.filter((name) => !Object.hasOwn(properties, name));
  if (missing.length === 0) return node;
  const isOpen = [node.additionalProperties, node.unevaluatedProperties].every(
    (others) => others === undefined || others === true,
  );
  const usable = missing.filter((name) => PARAMETER_NAME.test(name));
  if (!isOpen || usable.length < missing.length) note("required");
  return {
    ...node,
    properties: { ...properties, ...Object.fromEntries(usable.map((name) => [name, anyValue()])) },
    required: names.filter((name) => !missing.includes(name) || usable.includes(name)),
  };
}

/** What Gemini takes beside a `$ref`. */
const BESIDE_REFERENCE: ReadonlySet<string> = new Set(["$ref", "description", "default"]);
/** Keywords without which a schema takes the same values. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...["title", "$comment", "$id", "$schema", "$anchor", "$dynamicAnchor", "examples", "example"],
  ...["deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"],
]);

function referenceAlone(node: Schema, note: Note): Schema {
  const entries = Object.entries(node).filter(([key]) => BESIDE_REFERENCE.has(key));
  if (entries.length === Object.keys(node).length) return node;
  if (!Object.keys(node).every((key) => BESIDE_REFERENCE.has(key) || ANNOTATIONS.has(key))) note("beside");
  return Object.fromEntries(entries);
}

/** Items count several times each, depending on what they are. */
const ITEMS = 500;
/** Keyword -> the first number that is not declared, and its words. llama.cpp writes each of them out as a repetition. */
const COUNTS: readonly (readonly [string, number, string, string])[] = [
  ["minLength", REPETITIONS, "At least", "characters"],
  ["maxLength", REPETITIONS, "At most", "characters"],
  ["minItems", ITEMS, "At least", "items"],
  ["maxItems", ITEMS, "At most", "items"],
];

function withCountsInWords(node: Schema, note: Note): Schema {
  const large = COUNTS.filter(
    ([key, limit]) => Number.isInteger(node[key]) && (node[key] as number) >= limit,
  );
  if (large.length === 0) return node;
  note("count");
  const gone = large.map(([key]) => key);
  const schema = Object.fromEntries(Object.entries(node).filter(([key]) => !gone.includes(key)));
  return withText(
    schema,
    large.map(([key, , limit, unit]) => `${limit} ${node[key]} ${unit}.`),
  );
}

/** The same object if every provider takes it. `node`: a schema whose references lead into `$defs` of the root. */
export function portable(node: Schema, note: Note): Schema {
  if (typeof node.$ref === "string") return referenceAlone(node, note);
  let schema = node;
  if (node.anyOf !== undefined || node.oneOf !== undefined) {
    schema = withTypesInUnion(withNeedsInWords(schema, note), note);
  } else if (node.enum !== undefined) schema = withTypeOfValues(schema, note);
  if (schema.items !== undefined || schema.prefixItems !== undefined) schema = withOneItem(schema, note);
  if (schema.items === undefined && schema.type !== undefined) schema = withItems(schema);
  if (schema.required !== undefined) schema = withRequired(schema, note);
  return withCountsInWords(schema, note);
}
