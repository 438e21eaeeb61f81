/**
 * Resolves the references inside one schema, and finds those that only lead back to themselves. A recursive schema,
 * such as the schema of a tree, is sound: each round describes a deeper part of the value. A server writes the schema,
 * so the work must grow with its size only: every answer is kept, and loops are found in one pass.
 */

import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { percentDecoded } from "../../../src/shared/text/percent.ts";
import { DATA, HOLDERS, isMapBelow, isSchema, VALUES } from "./keywords.ts";
import { strongComponents } from "./strong-components.ts";

type Schema = Record<string, unknown>;

export interface References {
  /**
   * `#` and the pointer from the root, or undefined if the reference leads nowhere. `base`: pointer of the nearest
   * schema with an `$id`.
   */
  resolve(reference: string, base: string): string | undefined;
  /** Whether checking a value against `node` could go on for ever, if `node` refers to `target`. */
  loops(node: Schema, target: string): boolean;
}

export const REFERENCES: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

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

const tokensOf = (pointer: string): string[] => pointer.split("/").slice(1).map(decoded);

/** The same pointer in the one spelling that every reader decodes alike. */
const canonical = (pointer: string): string =>
  tokensOf(pointer)
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
  for (const token of tokensOf(pointer)) {
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, token)) return undefined;
    const child: unknown = (node as Schema)[token];
    if (!Array.isArray(node)) role = roleBelow(role, token, child);
    if (role === undefined) return undefined;
    node = child;
  }
  return isSchema(node) && role !== "map" ? node : undefined;
}

/** The schemas inside `node` that judge the same value, without the targets of references. */
export const inPlaceParts = (node: Schema): unknown[] => [
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

/** Opens the references of one schema. The schema must not change afterwards. */
export function openReferences(root: Schema): References {
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
  const resolve = (reference: string, base: string): string | undefined => {
    let answers = found.get(base);
    if (!answers) {
      answers = new Map();
      found.set(base, answers);
    }
    if (!answers.has(reference)) answers.set(reference, find(reference, base));
    return answers.get(reference);
  };

  const targets = new Map<string, unknown>();
  const targetOf = (pointer: string): unknown => {
    if (!targets.has(pointer)) targets.set(pointer, schemaAt(root, pointer.slice(1)));
    return targets.get(pointer);
  };

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
    loops: (node, target) => {
      const schema = targetOf(target);
      if (!isObject(schema)) return false;
      // The node refers to the target, so the two form a loop exactly if the target leads back to the node.
      groups ??= strongComponents(known().bases.keys(), inPlace);
      return schema === node || groups.get(schema) === groups.get(node);
    },
  };
}
