/**
 * Makes the root of an input schema one object schema. Providers refuse a root of another type and unions at the root,
 * and some read only `properties` and `required`; so the properties of all parts of a union are gathered there. The
 * root then takes what any of the parts takes, and the server still refuses the rest. Pure.
 */

import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import { isWithin, type Size, sizeOf } from "../../shared/json.ts";
import { kept, type Repair, type Schema, soundType } from "./keywords.ts";
import { schemaAt } from "./references.ts";

interface Shape {
  /** Name -> schemas that all hold for the property, each once. */
  properties: ReadonlyMap<string, readonly unknown[]>;
  required: ReadonlySet<string>;
  /** True if the object has no other properties. */
  closed: boolean;
  /** True if some part was not read; it may name further properties. */
  isPartial: boolean;
}

/** The shape of a schema that takes any object. */
const OPEN: Shape = { properties: new Map(), required: new Set(), closed: false, isPartial: false };
/** The shape of a schema that was not read. */
const UNKNOWN: Shape = { ...OPEN, isPartial: true };

/** Properties that are merged for one schema. A thousand unions of fifty properties stay below. */
const MERGES = 50_000;
/** A property with more values than this takes any value: each union that holds it would double it. */
const PROPERTY_NODES = 2_000;
/** Characters of JSON that are made to find equal properties. */
const COMPARED_CHARS = 4 * 1024 * 1024;

/**
 * Whether an open shape names only properties that the strict (closed) shape names too. Then both together are closed.
 * Otherwise the author meant the two as one schema, and a closed result would forbid what only the open shape names.
 */
function namesNoFurther(
  { properties, isPartial }: Pick<Shape, "properties" | "isPartial">,
  strict: ReadonlyMap<string, unknown>,
): boolean {
  if (isPartial) return false;
  for (const name of properties.keys()) if (!strict.has(name)) return false;
  return true;
}

/** One schema for several that all hold. */
const allOf = (schemas: readonly unknown[]): unknown =>
  schemas.length === 1 ? schemas[0] : { allOf: schemas };

/** Merges shapes for one schema, within one budget. */
class ShapeMerger {
  #merges = MERGES;
  #comparedChars = COMPARED_CHARS;
  readonly #texts = new WeakMap<object, string>();
  readonly #nodes = new WeakMap<object, number>();

  /** True if the budget is spent: later results say less than they could. */
  get isSpent(): boolean {
    return this.#merges <= 0;
  }

  /** The shape of a schema for which all these shapes hold. */
  all(shapes: readonly Shape[]): Shape {
    const [first, ...rest] = shapes;
    if (!first || rest.length === 0) return first ?? OPEN;
    if (!this.#spend(first)) return UNKNOWN;
    const properties = new Map<string, readonly unknown[]>(first.properties);
    const required = new Set(first.required);
    let { closed, isPartial } = first;
    for (const shape of rest) {
      if (!this.#spend(shape)) return UNKNOWN;
      closed = closed
        ? shape.closed || namesNoFurther(shape, properties)
        : shape.closed && namesNoFurther({ properties, isPartial }, shape.properties);
      for (const [name, schemas] of shape.properties) {
        const both = this.#union(properties.get(name) ?? [], schemas);
        properties.set(name, both.length > 1 ? this.#bounded(both) : both);
      }
      for (const name of shape.required) required.add(name);
      isPartial ||= shape.isPartial;
    }
    return { properties, required, closed, isPartial };
  }

  /** The shape of a schema for which one of these shapes holds. */
  one(shapes: readonly Shape[]): Shape {
    const [first] = shapes;
    if (!first) return OPEN;
    const given = new Map<string, unknown[]>();
    const requiredBy = new Map<string, number>();
    for (const shape of shapes) {
      if (!this.#spend(shape)) return UNKNOWN;
      for (const [name, schemas] of shape.properties) {
        const alternatives = given.get(name);
        if (alternatives) alternatives.push(allOf(schemas));
        else given.set(name, [allOf(schemas)]);
      }
      for (const name of shape.required) requiredBy.set(name, (requiredBy.get(name) ?? 0) + 1);
    }
    const properties = new Map<string, readonly unknown[]>();
    for (const [name, alternatives] of given) {
      const distinct = this.#union([], alternatives);
      properties.set(name, distinct.length > 1 ? this.#bounded([{ anyOf: distinct }]) : distinct);
    }
    const required = [...first.required].filter((name) => requiredBy.get(name) === shapes.length);
    return {
      properties,
      required: new Set(required),
      closed: shapes.every(({ closed }) => closed),
      isPartial: shapes.some(({ isPartial }) => isPartial),
    };
  }

  #spend({ properties, required }: Shape): boolean {
    this.#merges -= properties.size + required.size + 1;
    return !this.isSpent;
  }

  /** The schemas of `before`, and each schema of `more` that equals none of them. */
  #union(before: readonly unknown[], more: readonly unknown[]): readonly unknown[] {
    const seen = new Set<unknown>(before.map((schema) => this.#keyOf(schema)));
    const added: unknown[] = [];
    for (const schema of more) {
      const key = this.#keyOf(schema);
      if (seen.has(key)) continue;
      seen.add(key);
      added.push(schema);
    }
    return before.length === 0 ? added : added.length === 0 ? before : [...before, ...added];
  }

  /** The same key for equal schemas, as long as the budget for comparing lasts. */
  #keyOf(schema: unknown): unknown {
    if (typeof schema !== "object" || schema === null) return schema;
    const known = this.#texts.get(schema);
    if (known !== undefined) return known;
    if (this.#comparedChars <= 0) return schema;
    const text = JSON.stringify(schema);
    this.#comparedChars -= text.length;
    this.#texts.set(schema, text);
    return text;
  }

  /** The merged schemas, or one that takes any value if they are too large. */
  #bounded(schemas: readonly unknown[]): readonly unknown[] {
    let nodes = 0;
    for (const schema of schemas) nodes += this.#nodesOf(schema);
    return nodes > PROPERTY_NODES ? [{}] : schemas;
  }

  #nodesOf(schema: unknown): number {
    if (!isObject(schema)) return 1;
    return kept(this.#nodes, schema, () => sizeOf(schema, { nodes: PROPERTY_NODES, chars: Infinity }).nodes);
  }
}

/** Keywords that providers refuse at the root. */
const NOT_AT_ROOT = [
  ...(["$ref", "$dynamicRef", "$recursiveRef"] as const),
  ...(["allOf", "anyOf", "oneOf", "not", "enum", "const"] as const),
] as const;
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
    // A part's patterns allow names that its shape does not hold; those of the root itself stay where they are.
    const hasPatterns = node !== this.#root && Object.keys(node.patternProperties ?? {}).length > 0;
    const own: Shape = {
      properties: new Map(properties.map(([name, schema]) => [name, [schema]])),
      required: new Set(required),
      closed: node.additionalProperties === false && !hasPatterns,
      isPartial: hasPatterns,
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
