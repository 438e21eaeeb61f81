/**
 * Resolves the references inside one schema, and finds those that only lead back to themselves. A recursive schema,
 * such as the schema of a tree, is sound: each round describes a deeper part of the value. A server writes the schema,
 * so the work must grow with its size only: every answer is kept, and loops are found in one pass.
 */

import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import { percentDecoded } from "../../../src/shared/text/reading.ts";
import { DATA, HOLDERS, isMapBelow, isSchema, kept, type Schema, VALUES } from "./keywords.ts";

export const REFERENCES: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

/** Whether the value holds a reference at any depth. */
export function holdsReference(value: unknown): boolean {
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const [key, child] of Object.entries(next)) {
      if (REFERENCES.has(key) && typeof child === "string") return true;
      open.push(child);
    }
  }
  return false;
}

/** Keywords whose schemas judge the same value as the schema that holds them. */
const IN_PLACE_LISTS = ["allOf", "anyOf", "oneOf"] as const;
const IN_PLACE = ["not", "if", "then", "else"] as const;
const IN_PLACE_MAPS = ["dependentSchemas", "dependencies"] as const;
const WALK_DEPTH = 64;
/** Far longer than pointers that people write. Each reference is rewritten as the whole pointer of its target. */
const POINTER_CHARS = 4_000;

const decoded = (token: string): string => percentDecoded(token).replaceAll("~1", "/").replaceAll("~0", "~");

/** Characters that the reader of a reference would decode, or strip from its end. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a URL parser removes or encodes them.
const CODED = /[\u0000-\u0020%\u007f]/g;
/** The same characters, and those that separate and escape tokens. Few keys hold any of them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a URL parser removes or encodes them.
const SPECIAL = /[\u0000-\u0020%\u007f~/]/;
/** Characters that let two readers of one reference arrive at different schemas, such as a coded slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a URL parser removes or encodes them.
const MISREAD = /[\u0000-\u001f%\u007f]| $/;
const percentCoded = (char: string): string => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`;

/** A key as one token of a pointer in a URL's fragment (RFC 6901, section 6). */
export const pointerToken = (key: string): string =>
  SPECIAL.test(key) ? key.replaceAll("~", "~0").replaceAll("/", "~1").replace(CODED, percentCoded) : key;

export const pointerTokens = (pointer: string): string[] => pointer.split("/").slice(1).map(decoded);

/** The same pointer in the one spelling that every reader decodes alike. */
const canonical = (pointer: string): string =>
  pointerTokens(pointer)
    .map((token) => `/${pointerToken(token)}`)
    .join("");

/** How the repair reads an object. `foreign`: as a schema, or as an object that holds schemas below names. */
type Role = "schema" | "foreign" | "map";

/** The role of a key's value. Undefined: the repair leaves it alone as data, so no reference may lead to it. */
function roleBelow(role: Role, key: string, value: unknown): Role | undefined {
  if (role === "map") return "schema";
  const holder = HOLDERS.get(key);
  if (holder !== undefined) {
    if (!isObject(value)) return "schema";
    if (isMapBelow(holder, value, role === "foreign")) return "map";
    return holder === "schema" || holder === "items" ? "schema" : "foreign";
  }
  const isValue = VALUES.has(key) && !(role === "foreign" && isObject(value));
  return isValue || DATA.has(key) || REFERENCES.has(key) || key === "pattern" ? undefined : "foreign";
}

/** The schema at a JSON pointer (RFC 6901), or undefined, also for data that looks like a schema. */
export function schemaAt(root: unknown, pointer: string): unknown {
  if (pointer.length > POINTER_CHARS) return undefined;
  let node = root;
  let role: Role | undefined = "schema";
  for (const token of pointerTokens(pointer)) {
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, token)) return undefined;
    const child: unknown = (node as Schema)[token];
    if (!Array.isArray(node)) role = roleBelow(role, token, child);
    if (role === undefined) return undefined;
    node = child;
  }
  return isSchema(node) && role !== "map" ? node : undefined;
}

/** The schemas inside `node` that judge the same value, without the targets of references. */
const inPlaceParts = (node: Schema): unknown[] => [
  ...IN_PLACE_LISTS.flatMap((key) => (Array.isArray(node[key]) ? (node[key] as unknown[]) : [])),
  ...IN_PLACE.map((key) => node[key]),
  ...IN_PLACE_MAPS.flatMap((key) => (isObject(node[key]) ? Object.values(node[key]) : [])),
];

interface NamedSchemas {
  /** Name -> pointer. The name is an `$id` as it stands, or an `$anchor` behind a `#`. */
  named: Map<string, string>;
  /** Each object -> the pointer from which its local references start. */
  bases: Map<Schema, string>;
}

function namedSchemas(root: Schema): NamedSchemas {
  const found: NamedSchemas = { named: new Map(), bases: new Map() };
  const visit = (node: unknown, pointer: string, base: string, depth: number): void => {
    if (typeof node !== "object" || node === null || depth > WALK_DEPTH) return;
    let own = base;
    if (isObject(node)) {
      for (const name of [node.$anchor, node.$dynamicAnchor]) {
        if (typeof name === "string") found.named.set(`#${name}`, pointer);
      }
      if (typeof node.$id === "string") {
        found.named.set(node.$id.replace(/#$/, ""), pointer);
        own = pointer;
      }
      found.bases.set(node, own);
    }
    for (const [key, child] of Object.entries(node)) {
      visit(child, `${pointer}/${pointerToken(key)}`, own, depth + 1);
    }
  };
  visit(root, "", "", 0);
  return found;
}

export type References = ReturnType<typeof openReferences>;

/** Opens the references of one schema. The schema must not change afterwards. */
export function openReferences(root: Schema) {
  let names: NamedSchemas | undefined;
  const known = (): NamedSchemas => {
    names ??= namedSchemas(root);
    return names;
  };

  const find = (reference: string, base: string): string | undefined => {
    const hash = reference.indexOf("#");
    const document = hash === -1 ? reference : reference.slice(0, hash);
    const fragment = hash === -1 ? "" : reference.slice(hash + 1);
    const start = document === "" ? base : known().named.get(document);
    if (start === undefined) return undefined;
    const isPointer = fragment === "" || fragment.startsWith("/");
    const pointer = isPointer ? `${start}${fragment}` : known().named.get(`#${fragment}`);
    if (pointer === undefined || schemaAt(root, pointer) === undefined) return undefined;
    return `#${MISREAD.test(pointer) ? canonical(pointer) : pointer}`;
  };

  /** Base -> reference -> its answer. */
  const found = new Map<string, Map<string, string | undefined>>();
  /**
   * `#` and the pointer from the root, or undefined if the reference leads nowhere. `base`: pointer of the nearest
   * schema with an `$id`.
   */
  const resolve = (reference: string, base: string): string | undefined =>
    kept(
      kept(found, base, () => new Map()),
      reference,
      () => find(reference, base),
    );

  const targets = new Map<string, unknown>();
  const targetOf = (pointer: string): unknown =>
    kept(targets, pointer, () => schemaAt(root, pointer.slice(1)));

  const inPlace = (node: Schema): Schema[] => {
    const referred = [...REFERENCES].map((key) => {
      const reference = node[key];
      const target = typeof reference === "string" && resolve(reference, known().bases.get(node) ?? "");
      return target ? targetOf(target) : undefined;
    });
    return [...inPlaceParts(node), ...referred].filter(isObject);
  };

  let groups: Map<Schema, number> | undefined;
  return {
    resolve,
    /** Whether checking a value against `node` could go on for ever, if `node` refers to `target`. */
    loops: (node: Schema, target: string): boolean => {
      const schema = targetOf(target);
      if (!isObject(schema)) return false;
      // The node refers to the target, so the two form a loop exactly if the target leads back to the node.
      groups ??= strongComponents(known().bases.keys(), inPlace);
      return schema === node || groups.get(schema) === groups.get(node);
    },
  };
}

interface Visit<T extends object> {
  node: T;
  /** The nodes that this node leads to, and how many of them are done. */
  next: readonly T[];
  done: number;
  /** Position in the order of discovery. */
  index: number;
  /** Index of the earliest open node that this node leads to, as far as it is known. */
  lowest: number;
}

/**
 * Node -> number of its group, for every node that can be reached from `starts`. Two nodes have the same number exactly
 * if each leads to the other.
 */
export function strongComponents<T extends object>(
  starts: Iterable<T>,
  nextOf: (node: T) => readonly T[],
): Map<T, number> {
  const groups = new Map<T, number>();
  const visits = new Map<T, Visit<T>>();
  /** Discovered nodes whose group is not known yet. */
  const ungrouped: T[] = [];
  let groupCount = 0;

  const discover = (node: T): Visit<T> => {
    const visit = { node, next: nextOf(node), done: 0, index: visits.size, lowest: visits.size };
    visits.set(node, visit);
    ungrouped.push(node);
    return visit;
  };
  const close = ({ node, index, lowest }: Visit<T>): void => {
    if (lowest !== index) return;
    for (let member = ungrouped.pop(); member !== undefined; member = ungrouped.pop()) {
      groups.set(member, groupCount);
      if (member === node) break;
    }
    groupCount++;
  };

  for (const start of starts) {
    if (visits.has(start)) continue;
    const open = [discover(start)];
    for (let visit = open.at(-1); visit !== undefined; visit = open.at(-1)) {
      const next = visit.next[visit.done++];
      if (next === undefined) {
        open.pop();
        close(visit);
        const parent = open.at(-1);
        if (parent) parent.lowest = Math.min(parent.lowest, visit.lowest);
        continue;
      }
      const known = visits.get(next);
      if (!known) open.push(discover(next));
      else if (!groups.has(next)) visit.lowest = Math.min(visit.lowest, known.index);
    }
  }
  return groups;
}

/** The schemas that judge one part of a value, each with the number of ways that lead to it. */
type Ways = ReadonlyMap<Schema, number>;

/** The most ways into one part of a value. Two unions of 200 alternatives stay below. */
const WAYS = 500;
/** The most steps of the count itself. A schema that needs more counts as a schema with too many ways. */
const STEPS = 400_000;

/** Thrown to end the count early. */
class TooMany extends Error {}

const namesIn = (list: unknown): string[] => asList(list).filter((name) => typeof name === "string");
const schemasOf = (value: unknown): Schema[] => (Array.isArray(value) ? value : [value]).filter(isObject);
const valuesOf = (map: unknown): unknown[] => (isObject(map) ? Object.values(map) : []);

/** The schemas that a schema holds for the parts of a value. */
interface Parts {
  byName: ReadonlyMap<string, Schema>;
  /** They judge the property of any name. */
  anyName: Schema[];
  /** They judge properties that `byName` does not list. */
  otherNames: Schema[];
  /** Schemas of the first items of a list, by position. */
  byPosition: unknown[];
  /** They judge any item. */
  anyItem: Schema[];
  /** They judge the items behind `byPosition`. */
  otherItems: Schema[];
}

function partsOf(node: Schema): Parts {
  const { properties, prefixItems, items, additionalItems } = node;
  const named = isObject(properties) ? Object.entries(properties) : [];
  const positions = Array.isArray(items) ? items : prefixItems;
  return {
    byName: new Map(named.filter((entry): entry is [string, Schema] => isObject(entry[1]))),
    anyName: [
      ...valuesOf(node.patternProperties),
      ...schemasOf(node.propertyNames),
      ...schemasOf(node.unevaluatedProperties),
    ].filter(isObject),
    otherNames: schemasOf(node.additionalProperties),
    byPosition: Array.isArray(positions) ? positions : [],
    anyItem: [...schemasOf(node.contains), ...schemasOf(node.unevaluatedItems)],
    otherItems: schemasOf(Array.isArray(items) ? additionalItems : items),
  };
}

class Counter {
  readonly #root: Schema;
  #steps = 0;
  readonly #referred = new Map<Schema, Schema[]>();
  readonly #parts = new Map<Schema, Parts>();
  readonly #closures = new Map<boolean, Map<Schema, Ways>>([true, false].map((wraps) => [wraps, new Map()]));

  constructor(root: Schema) {
    this.#root = root;
  }

  partsOf(node: Schema): Parts {
    return kept(this.#parts, node, () => partsOf(node));
  }

  /** Schemas that judge the same value as `node`. */
  sameValue(node: Schema): Schema[] {
    return kept(this.#referred, node, () => {
      const targets = [...REFERENCES].map((key) => {
        const reference = node[key];
        return typeof reference === "string" ? schemaAt(this.#root, reference.slice(1)) : undefined;
      });
      return [...inPlaceParts(node), ...targets].filter(isObject);
    });
  }

  step(steps = 1): void {
    this.#steps += steps;
    if (this.#steps > STEPS) throw new TooMany();
  }

  /**
   * All schemas that judge a value once `node` does. `wraps`: the value is not a list. Pi makes a list of it if a list
   * is expected, so the schema of the items judges it too, unless that schema is already judging it.
   */
  #closure(node: Schema, wraps: boolean): Ways {
    const known = this.#closures.get(wraps)?.get(node);
    if (known) return known;
    const ways = new Map<Schema, number>();
    const underWay = new Set<Schema>();
    let total = 0;
    const visit = (schema: Schema): void => {
      if (underWay.has(schema)) return;
      this.step();
      if (++total > WAYS) throw new TooMany();
      ways.set(schema, (ways.get(schema) ?? 0) + 1);
      underWay.add(schema);
      for (const part of this.sameValue(schema)) visit(part);
      if (wraps) for (const part of this.partsOf(schema).otherItems) visit(part);
      underWay.delete(schema);
    };
    visit(node);
    this.#closures.get(wraps)?.set(node, ways);
    return ways;
  }

  /** The same for several schemas that judge one value. */
  closureOf(entries: Ways, wraps: boolean): Ways {
    const all = new Map<Schema, number>();
    let total = 0;
    for (const [node, count] of entries) {
      const closure = this.#closure(node, wraps);
      this.step(closure.size);
      for (const [schema, ways] of closure) {
        all.set(schema, (all.get(schema) ?? 0) + count * ways);
        total += count * ways;
      }
    }
    if (total > WAYS) throw new TooMany();
    return all;
  }

  add(ways: Map<Schema, number>, schemas: readonly Schema[], count: number): void {
    this.step(schemas.length);
    for (const schema of schemas) ways.set(schema, (ways.get(schema) ?? 0) + count);
  }

  /** The schemas that judge each property that a value may have. The last entry is for properties without a name. */
  properties(closure: Ways): Map<Schema, number>[] {
    const others = new Map<Schema, number>();
    const names = new Map<string, [Schema, number][]>();
    const withOthers: [Schema, number][] = [];
    for (const [node, count] of closure) {
      const { byName, anyName, otherNames } = this.partsOf(node);
      this.step(byName.size + 1);
      this.add(others, anyName, count);
      if (otherNames.length > 0) withOthers.push([node, count]);
      for (const name of byName.keys()) {
        const holders = names.get(name);
        if (holders) holders.push([node, count]);
        else names.set(name, [[node, count]]);
      }
    }
    const states = [...names].map(([name, holders]) => {
      const ways = new Map(others);
      this.step(others.size + withOthers.length);
      for (const [node, count] of holders)
        this.add(ways, schemasOf(this.partsOf(node).byName.get(name)), count);
      for (const [node, count] of withOthers) {
        if (!this.partsOf(node).byName.has(name)) this.add(ways, this.partsOf(node).otherNames, count);
      }
      return ways;
    });
    for (const [node, count] of withOthers) this.add(others, this.partsOf(node).otherNames, count);
    return [...states, others];
  }

  /** The schemas that judge the item at each position of a list. */
  items(closure: Ways): Map<Schema, number>[] {
    const positions = Math.max(0, ...[...closure.keys()].map((node) => this.partsOf(node).byPosition.length));
    return Array.from({ length: positions + 1 }, (_, at) => {
      const ways = new Map<Schema, number>();
      for (const [node, count] of closure) {
        const { byPosition, anyItem, otherItems } = this.partsOf(node);
        this.add(ways, anyItem, count);
        this.add(ways, at < byPosition.length ? schemasOf(byPosition[at]) : otherItems, count);
      }
      return ways;
    });
  }
}

/** Whether every part of every value has at most `WAYS` ways into it. `root`: a repaired schema. */
export function isCheckedFast(root: Schema): boolean {
  const counter = new Counter(root);
  const numbers = new Map<Schema, number>();
  const keyOf = (ways: Ways): string =>
    [...ways]
      .map(([node, count]) => {
        const number = numbers.get(node) ?? numbers.size;
        numbers.set(node, number);
        return `${number}*${count}`;
      })
      .sort()
      .join();
  const seen = new Set<string>();
  const open: Ways[] = [new Map([[root, 1]])];
  try {
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      const key = keyOf(state);
      counter.step(state.size);
      if (state.size === 0 || seen.has(key)) continue;
      seen.add(key);
      const ofObject = counter.closureOf(state, true);
      const ofList = counter.closureOf(state, false);
      open.push(...counter.properties(ofObject), ...counter.items(ofList));
    }
    return true;
  } catch (error) {
    if (error instanceof TooMany) return false;
    throw error;
  }
}

/** Answers whether references of a schema lead back to it, at any depth of a value. `root`: a repaired schema. */
export function recursiveReferences(root: Schema): (node: Schema) => boolean {
  const counter = new Counter(root);
  const nextOf = (node: Schema): Schema[] => {
    const { byName, anyName, otherNames, byPosition, anyItem, otherItems } = counter.partsOf(node);
    const parts = [...anyName, ...otherNames, ...byPosition.filter(isObject), ...anyItem, ...otherItems];
    return [...counter.sameValue(node), ...byName.values(), ...parts];
  };
  const groups = strongComponents([root], nextOf);
  const sizes = new Map<number, number>();
  for (const group of groups.values()) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  return (node) => (sizes.get(groups.get(node) ?? -1) ?? 0) > 1;
}

const isNullable = (schema: Schema): boolean =>
  schema.type === "null" ||
  asList(schema.type).includes("null") ||
  [...asList(schema.anyOf), ...asList(schema.oneOf)].some((part) => isObject(part) && isNullable(part));

/** Whether a reference stands in the schema, but in no further parameter. Each loop has such a place. */
const refers = (schema: Schema): boolean =>
  typeof schema.$ref === "string" ||
  [...inPlaceParts(schema), schema.items].some((part) => isObject(part) && refers(part));

/** The schema of a required parameter that may not be null and holds a reference; else undefined. */
function neededFrom(node: Schema, name: string): Schema | undefined {
  const schema = isObject(node.properties) ? node.properties[name] : undefined;
  return isObject(schema) && refers(schema) && !isNullable(schema) ? schema : undefined;
}

function objectsIn(value: unknown): Schema[] {
  const found: Schema[] = [];
  const open = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (typeof next !== "object" || next === null) continue;
    if (isObject(next)) found.push(next);
    open.push(...Object.values(next));
  }
  return found;
}

/**
 * Answers whether a required parameter of a schema leads back to the schema with no way out: over parameters that are
 * required and may not be null, and over lists that may not be empty. Undefined if none does. `root`: a repaired schema.
 */
export function requiredLoops(root: Schema): ((node: Schema, name: string) => boolean) | undefined {
  const needs = (node: Schema): boolean => namesIn(node.required).some((name) => neededFrom(node, name));
  const starts = objectsIn(root).filter(needs);
  if (starts.length === 0) return undefined;
  const counter = new Counter(root);
  const groups = strongComponents(starts, (node) => {
    const { properties, items, minItems } = node;
    const named = isObject(properties) ? namesIn(node.required).map((name) => properties[name]) : [];
    const needed = named.filter((schema): schema is Schema => isObject(schema) && !isNullable(schema));
    const first = typeof minItems === "number" && minItems > 0 ? schemasOf(items) : [];
    return [...counter.sameValue(node), ...needed, ...first];
  });
  const loops = (node: Schema, name: string): boolean => {
    const needed = neededFrom(node, name);
    return needed !== undefined && groups.has(node) && groups.get(needed) === groups.get(node);
  };
  return starts.some((node) => namesIn(node.required).some((name) => loops(node, name))) ? loops : undefined;
}
