/**
 * The root of an input schema as one object schema. Providers refuse a root of another type and unions at
 * the root, and some read nothing of it but `properties` and `required`; so what the parts of a union take is
 * gathered there. It then takes what any of the parts takes, and the server still refuses the rest. Pure.
 */
import { isObject } from "../../src/protocol/is-object.ts";
import { soundType } from "./schema-keywords.ts";
import type { Repair } from "./schema-nodes.ts";
import { schemaAt } from "./schema-references.ts";

type Schema = Record<string, unknown>;

/** What an object schema says of its properties. */
interface Shape {
  properties: Map<string, unknown>;
  required: Set<string>;
  /** No others than these. */
  closed: boolean;
}

/** Providers refuse these at the root. */
const NOT_AT_ROOT = ["$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"] as const;
/** A union in a union in a union is no interface for a model. */
const DEPTH = 8;

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** A word that is no type says nothing. */
function takesObjects(written: unknown): boolean {
  const type = soundType(written);
  return type === undefined || type === "object" || (Array.isArray(type) && type.includes("object"));
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Both hold. */
function both(a: Shape, b: Shape): Shape {
  const properties = new Map(a.properties);
  for (const [name, schema] of b.properties) {
    const other = properties.get(name);
    const equal = other === undefined || same(other, schema);
    properties.set(name, equal ? schema : { allOf: [other, schema] });
  }
  // Each would forbid what only the other names.
  return { properties, required: new Set([...a.required, ...b.required]), closed: a.closed && b.closed };
}

/** One of them holds. */
function oneOf(shapes: readonly Shape[]): Shape {
  const [first] = shapes;
  const names = new Set(shapes.flatMap(({ properties }) => [...properties.keys()]));
  const properties = new Map<string, unknown>();
  for (const name of names) {
    const given = shapes.flatMap((shape) => (shape.properties.has(name) ? [shape.properties.get(name)] : []));
    const distinct = given.filter((schema, i) => given.findIndex((other) => same(other, schema)) === i);
    properties.set(name, distinct.length === 1 ? distinct[0] : { anyOf: distinct });
  }
  const required = [...(first?.required ?? [])].filter((name) =>
    shapes.every((shape) => shape.required.has(name)),
  );
  return { properties, required: new Set(required), closed: shapes.every(({ closed }) => closed) };
}

/** Undefined for a schema that takes no object. */
function shapeOf(root: Schema, node: unknown, depth: number): Shape | undefined {
  if (node === true || depth > DEPTH) return { properties: new Map(), required: new Set(), closed: false };
  if (!isObject(node) || !takesObjects(node.type)) return undefined;
  const required = list(node.required).filter((name) => typeof name === "string");
  let shape: Shape = {
    properties: new Map(Object.entries(isObject(node.properties) ? node.properties : {})),
    required: new Set(required),
    closed: node.additionalProperties === false,
  };
  const saysNothing = shape.properties.size === 0 && node.additionalProperties === undefined;
  let isFirst = saysNothing && shape.required.size === 0;
  const add = (part: Shape | undefined): void => {
    if (!part) return;
    shape = isFirst ? part : both(shape, part);
    isFirst = false;
  };
  if (typeof node.$ref === "string" && node.$ref.startsWith("#")) {
    add(shapeOf(root, schemaAt(root, node.$ref.slice(1)), depth + 1));
  }
  for (const part of list(node.allOf)) add(shapeOf(root, part, depth + 1));
  for (const union of [node.anyOf, node.oneOf].map(list)) {
    const parts = union.map((part) => shapeOf(root, part, depth + 1)).filter((part) => part !== undefined);
    if (parts.length > 0) add(oneOf(parts));
  }
  return shape;
}

/** The input is left alone. */
export function objectRoot(raw: unknown, repaired: (repair: Repair) => void): Schema {
  if (!isObject(raw) || !takesObjects(raw.type)) {
    // A tool without a schema is not one with a bad schema.
    if (raw !== undefined) repaired("root");
    return { type: "object", properties: {} };
  }
  if (raw.type !== "object" || !isObject(raw.properties ?? {})) repaired("root");
  if (!NOT_AT_ROOT.some((key) => Object.hasOwn(raw, key))) {
    return { ...raw, type: "object", properties: isObject(raw.properties) ? raw.properties : {} };
  }
  repaired("union");
  const { properties, required, closed } = shapeOf(raw, raw, 0) as Shape;
  const rest = Object.entries(raw).filter(
    ([key, value]) =>
      !(NOT_AT_ROOT as readonly string[]).includes(key) &&
      key !== "required" &&
      !(key === "additionalProperties" && value === false),
  );
  return {
    ...Object.fromEntries(rest),
    type: "object",
    properties: Object.fromEntries(properties),
    ...(closed ? { additionalProperties: false } : {}),
    ...(required.size > 0 ? { required: [...required] } : {}),
  };
}
