/**
 * Makes the root of an input schema one object schema. Providers refuse a root of another type and unions at the root,
 * and some read only `properties` and `required`; so the properties of all parts of a union are gathered there. The
 * root then takes what any of the parts takes, and the server still refuses the rest. Pure.
 */
import { asList, isObject } from "../../../src/shared/protocol/is-object.ts";
import { soundType } from "./keywords.ts";
import { schemaAt } from "./references.ts";
import type { Repair } from "./repairs.ts";
import { allOf, OPEN, type Shape, ShapeMerger, UNKNOWN } from "./shape.ts";
import { isWithin, type Size } from "./size.ts";

type Schema = Record<string, unknown>;

/** Keywords that providers refuse at the root. */
const NOT_AT_ROOT = ["$ref", "allOf", "anyOf", "oneOf", "not", "enum", "const"] as const;
/** Schemas that are visited for one root. A root with more takes any object. */
const VISITS = 2_000;
/** The longest chain of references that is followed. No real schema has as many, and each takes a part of the stack. */
const DEPTH = 100;

/** Whether the value of `type` allows objects. A word that is not a type says nothing. */
function takesObjects(written: unknown): boolean {
  const type = soundType(written);
  return type === undefined || type === "object" || (Array.isArray(type) && type.includes("object"));
}

/**
 * Gathers the properties of a root. Each schema is read once, however many references lead to it. A reference back to
 * the schema that is being read adds nothing.
 */
class ShapeReader {
  readonly #root: Schema;
  readonly #merger = new ShapeMerger();
  readonly #known = new Map<Schema, Shape | undefined>();
  #visits = 0;
  #depth = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  /** True if a limit was reached and parts were left out. */
  get isSpent(): boolean {
    return this.#visits > VISITS || this.#merger.isSpent;
  }

  /** The shape of the schema; undefined if the schema takes no object. */
  read(node: unknown): Shape | undefined {
    if (node === true) return OPEN;
    if (!isObject(node)) return undefined;
    if (this.#known.has(node)) return this.#known.get(node);
    if (++this.#visits > VISITS || this.#depth >= DEPTH || this.#merger.isSpent) return UNKNOWN;
    this.#known.set(node, UNKNOWN);
    this.#depth++;
    const shape = takesObjects(node.type) ? this.#merger.all(this.#partsOf(node)) : undefined;
    this.#depth--;
    this.#known.set(node, shape);
    return shape;
  }

  #partsOf(node: Schema): Shape[] {
    const required = asList(node.required).filter((name) => typeof name === "string");
    const properties = Object.entries(isObject(node.properties) ? node.properties : {});
    const own: Shape = {
      properties: new Map(properties.map(([name, schema]) => [name, [schema]])),
      required: new Set(required),
      closed: node.additionalProperties === false,
      isPartial: false,
    };
    const saysNothing =
      properties.length === 0 && required.length === 0 && node.additionalProperties === undefined;
    const referred =
      typeof node.$ref === "string" && node.$ref.startsWith("#")
        ? [schemaAt(this.#root, node.$ref.slice(1))]
        : [];
    const parts = [...referred, ...asList(node.allOf)].map((part) => this.read(part));
    for (const union of [asList(node.anyOf), asList(node.oneOf)]) {
      const shapes = union.map((part) => this.read(part)).filter((shape) => shape !== undefined);
      if (shapes.length > 0) parts.push(this.#merger.one(shapes));
    }
    return [...(saysNothing ? [] : [own]), ...parts.filter((shape) => shape !== undefined)];
  }
}

/** A new root; `raw` is not changed. `limit`: the largest root that the parts of a union may make. */
export function objectRoot(raw: unknown, repaired: (repair: Repair) => void, limit: Size): Schema {
  if (!isObject(raw) || !takesObjects(raw.type)) {
    // A tool without a schema has no bad schema, so nothing is reported.
    if (raw !== undefined) repaired("root");
    return { type: "object", properties: {} };
  }
  if (raw.type !== "object" || !isObject(raw.properties ?? {})) repaired("root");
  if (!NOT_AT_ROOT.some((key) => Object.hasOwn(raw, key))) {
    return { ...raw, type: "object", properties: isObject(raw.properties) ? raw.properties : {} };
  }
  repaired("union");
  const reader = new ShapeReader(raw);
  const shape = reader.read(raw) ?? OPEN;
  if (reader.isSpent) repaired("size");
  const rest = Object.fromEntries(
    Object.entries(raw).filter(
      ([key, value]) =>
        !(NOT_AT_ROOT as readonly string[]).includes(key) &&
        key !== "required" &&
        !(key === "additionalProperties" && value === false),
    ),
  );
  const root = {
    ...rest,
    type: "object",
    properties: Object.fromEntries([...shape.properties].map(([name, all]) => [name, allOf(all)])),
    ...(shape.closed ? { additionalProperties: false } : {}),
    ...(shape.required.size > 0 ? { required: [...shape.required] } : {}),
  };
  if (isWithin(root, limit)) return root;
  repaired("size");
  return { ...rest, type: "object", properties: isObject(raw.properties) ? raw.properties : {} };
}
