/**
 * Bounds the work of a host that checks one value against a schema. Pi checks on its main thread, and a server decides
 * on the schema and in the end on the value. References make a small schema as large as its author likes: a chain of
 * doublings, or a recursion with two ways into the same part of a value, has exponentially many ways through it. Pure.
 *
 * The count: for every part that a value can have, the ways by which schemas come to judge that part. A part is
 * described by the keys that lead to it, so recursion comes back to a state that is known already.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { inPlaceParts, REFERENCES, schemaAt } from "./references.ts";
import { strongComponents } from "./strong-components.ts";

type Schema = Record<string, unknown>;
/** The schemas that judge one part of a value, each with the number of ways that lead to it. */
type Ways = ReadonlyMap<Schema, number>;

/** The most ways into one part of a value. Two unions of 200 alternatives stay below. */
const WAYS = 500;
/** The most steps of the count itself. A schema that needs more counts as a schema with too many ways. */
const STEPS = 400_000;

/** Thrown to end the count early. */
class TooMany extends Error {}

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
    let parts = this.#parts.get(node);
    if (!parts) {
      parts = partsOf(node);
      this.#parts.set(node, parts);
    }
    return parts;
  }

  /** Schemas that judge the same value as `node`. */
  sameValue(node: Schema): Schema[] {
    let all = this.#referred.get(node);
    if (!all) {
      const targets = [...REFERENCES].map((key) => {
        const reference = node[key];
        return typeof reference === "string" ? schemaAt(this.#root, reference.slice(1)) : undefined;
      });
      all = [...inPlaceParts(node), ...targets].filter(isObject);
      this.#referred.set(node, all);
    }
    return all;
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
