/**
 * References inside one schema: which lead somewhere, and which only lead back to themselves. A recursive
 * schema, such as that of a tree, is sound: each round describes a deeper part of the value.
 */
import { isObject } from "../../src/protocol/is-object.ts";
import { isSchema } from "./schema-keywords.ts";

type Schema = Record<string, unknown>;

export interface References {
  /** `#` and the pointer from the root, or undefined where the reference leads nowhere. `base`: of its `$id`. */
  resolve(reference: string, base: string): string | undefined;
  /** Whether a value could be checked against `node` for ever, once it refers to `target`. */
  loops(node: Schema, target: string): boolean;
}

/** Keywords whose schemas say more of the same value. */
const IN_PLACE_LISTS = ["allOf", "anyOf", "oneOf"] as const;
const IN_PLACE = ["not", "if", "then", "else"] as const;
const WALK_DEPTH = 64;

const decoded = (token: string): string => {
  try {
    return decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return token.replaceAll("~1", "/").replaceAll("~0", "~");
  }
};

/** The schema at a JSON pointer (RFC 6901), or undefined. */
export function schemaAt(root: unknown, pointer: string): unknown {
  let node = root;
  for (const token of pointer.split("/").slice(1).map(decoded)) {
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, token)) return undefined;
    node = (node as Schema)[token];
  }
  return isSchema(node) ? node : undefined;
}

/** Pointers of what bears a name of its own: `$id` as it stands, `$anchor` behind a `#`. */
function namedPlaces(root: Schema): Map<string, string> {
  const places = new Map<string, string>();
  const visit = (node: unknown, pointer: string, depth: number): void => {
    if (typeof node !== "object" || node === null || depth > WALK_DEPTH) return;
    if (isObject(node)) {
      for (const name of [node.$anchor, node.$dynamicAnchor]) {
        if (typeof name === "string") places.set(`#${name}`, pointer);
      }
      if (typeof node.$id === "string") places.set(node.$id.replace(/#$/, ""), pointer);
    }
    for (const [key, child] of Object.entries(node)) {
      visit(child, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, depth + 1);
    }
  };
  visit(root, "", 0);
  return places;
}

export function openReferences(root: Schema): References {
  let named: Map<string, string> | undefined;
  const placeOf = (name: string): string | undefined => {
    named ??= namedPlaces(root);
    return named.get(name);
  };

  const resolve = (reference: string, base: string): string | undefined => {
    const hash = reference.indexOf("#");
    const document = hash === -1 ? reference : reference.slice(0, hash);
    const fragment = hash === -1 ? "" : reference.slice(hash + 1);
    const start = document === "" ? base : placeOf(document);
    if (start === undefined) return undefined;
    const isPointer = fragment === "" || fragment.startsWith("/");
    const pointer = isPointer ? `${start}${fragment}` : placeOf(`#${fragment}`);
    if (pointer === undefined || schemaAt(root, pointer) === undefined) return undefined;
    return `#${pointer}`;
  };

  const inPlace = (node: Schema): unknown[] => [
    ...IN_PLACE_LISTS.flatMap((key) => (Array.isArray(node[key]) ? (node[key] as unknown[]) : [])),
    ...IN_PLACE.map((key) => node[key]),
    ...(isObject(node.dependentSchemas) ? Object.values(node.dependentSchemas) : []),
    ...[node.$ref, node.$dynamicRef].map((reference) => {
      const target = typeof reference === "string" ? resolve(reference, "") : undefined;
      return target === undefined ? undefined : schemaAt(root, target.slice(1));
    }),
  ];

  return {
    resolve,
    loops: (node, target) => {
      const seen = new Set<unknown>();
      const open = [schemaAt(root, target.slice(1))];
      for (let next = open.pop(); next !== undefined; next = open.pop()) {
        if (next === node) return true;
        if (!isObject(next) || seen.has(next)) continue;
        seen.add(next);
        for (const child of inPlace(next)) if (child !== undefined) open.push(child);
      }
      return false;
    },
  };
}
