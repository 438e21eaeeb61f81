/**
 * Moves each schema that a reference leads to into `$defs` of the root: Moonshot and Gemini take references to no other
 * place, Anthropic gets no other place, and llama.cpp reads no coded pointer. A definition without a reference is left
 * out. The schema means the same afterwards, and each schema is moved once, however many references lead to it. Pure.
 */
import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import { PARAMETER_NAME } from "../../shared/listed.ts";
import { DATA, HOLDERS, kept, MAPS, type Schema, VALUES } from "./keywords.ts";
import { holdsReference, pointerTokens, REFERENCES, schemaAt } from "./references.ts";

export const DEFINITIONS: ReadonlySet<string> = new Set(["$defs", "definitions"]);
/** The keywords of a root that say something about the document, and nothing about a value. */
const OF_DOCUMENT: ReadonlySet<string> = new Set(["$schema", "$id", "$comment", ...DEFINITIONS]);

/** A copy of what stands below a schema. `change` makes the copy of each object that may be a schema. */
export function copiedBelow(node: Schema, change: (node: Schema) => unknown): Schema {
  const copied = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(copied) : isObject(value) ? change(value) : value;
  const entries = Object.entries(node).map(([key, value]): [string, unknown] => {
    if (DATA.has(key)) return [key, value];
    if (!MAPS.has(key) || !isObject(value)) return [key, copied(value)];
    return [key, Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, copied(schema)]))];
  });
  return Object.fromEntries(entries);
}

const without = (node: Schema, isGone: (key: string, value: unknown) => boolean): Schema =>
  Object.fromEntries(Object.entries(node).filter(([key, value]) => !isGone(key, value)));

/** Whether JSON Schema does not define the keyword. */
const isForeign = (key: string): boolean =>
  !HOLDERS.has(key) && !VALUES.has(key) && !DATA.has(key) && !REFERENCES.has(key) && key !== "pattern";

/** Characters of a name, so that a number behind it still fits. */
const NAME_CHARS = 56;
/** llama.cpp takes two names for one if only other characters than these tell them apart. */
const folded = (name: string): string => name.replaceAll(/[^A-Za-z0-9-]+/g, "-");

/** The last token of the pointer that is a name and no keyword, in characters that every provider takes. */
function nameFrom(tokens: readonly string[]): string {
  const own = tokens.findLast((token) => !HOLDERS.has(token) && !/^\d*$/.test(token));
  const name = (own ?? "root").replaceAll(/[^A-Za-z0-9_.-]+/g, "_").slice(0, NAME_CHARS);
  return /[A-Za-z0-9]/.test(name) ? name : "schema";
}

/** A target of references: the schema itself, or the pointer of one that is `true` or `false`. */
type Target = Schema | string;

class Mover {
  readonly #root: Schema;
  /** Reference -> its target. */
  readonly #known = new Map<string, Target>();
  /** Target -> its pointer. */
  readonly #targets = new Map<Target, string>();
  readonly #names = new Map<Target, string>();
  readonly #taken = new Set<string>();
  /** Folded name -> the number behind the last name like it. */
  readonly #counts = new Map<string, number>();
  /** The targets in the order in which the new schema refers to them. The set grows while it is read. */
  readonly #referred = new Set<Target>();

  constructor(root: Schema) {
    this.#root = root;
  }

  moved(): Schema {
    this.#findTargets();
    this.#keepNames();
    const holdsTargets = new Set([...this.#targets.values()].map((pointer) => pointerTokens(pointer)[0]));
    const top = without(
      this.#root,
      (key, value) =>
        DEFINITIONS.has(key) || (isForeign(key) && (holdsTargets.has(key) || holdsReference(value))),
    );
    const root = this.#bodyOf(top);
    const definitions: [string, unknown][] = [];
    for (const target of this.#referred) {
      const body = target === this.#root ? without(top, (key) => OF_DOCUMENT.has(key)) : target;
      const schema = isObject(body) ? this.#bodyOf(body) : schemaAt(this.#root, body);
      definitions.push([this.#names.get(target) as string, schema]);
    }
    return definitions.length === 0 ? root : { ...root, $defs: Object.fromEntries(definitions) };
  }

  #targetOf(reference: string): Target {
    return kept(this.#known, reference, () => {
      const pointer = reference.slice(1);
      const schema = schemaAt(this.#root, pointer);
      return isObject(schema) ? schema : pointer;
    });
  }

  #findTargets(): void {
    const visit = (node: Schema): Schema => {
      for (const [key, value] of Object.entries(node)) {
        if (!REFERENCES.has(key) || typeof value !== "string") continue;
        const target = this.#targetOf(value);
        if (!this.#targets.has(target)) this.#targets.set(target, value.slice(1));
      }
      return copiedBelow(
        without(node, (key) => DEFINITIONS.has(key)),
        visit,
      );
    };
    visit(without(this.#root, (key, value) => isForeign(key) && holdsReference(value)));
    // The map grows while it is read.
    for (const target of this.#targets.keys()) if (isObject(target) && target !== this.#root) visit(target);
  }

  /** A target that stands in the definitions of the root under a usable name keeps the name. */
  #keepNames(): void {
    for (const container of DEFINITIONS) {
      for (const [target, pointer] of this.#targets) {
        const [place, name, ...deeper] = pointerTokens(pointer);
        if (place !== container || name === undefined || deeper.length > 0) continue;
        if (this.#names.has(target) || !PARAMETER_NAME.test(name) || this.#taken.has(folded(name))) continue;
        this.#names.set(target, name);
        this.#taken.add(folded(name));
      }
    }
  }

  #nameOf(target: Target): string {
    return kept(this.#names, target, () => {
      const base = nameFrom(pointerTokens(this.#targets.get(target) ?? ""));
      const key = folded(base);
      let count = this.#counts.get(key) ?? 1;
      let name = base;
      while (this.#taken.has(folded(name))) name = `${base}${++count}`;
      this.#counts.set(key, count);
      this.#taken.add(folded(name));
      return name;
    });
  }

  #referenceTo(target: Target): string {
    this.#referred.add(target);
    return `#/$defs/${this.#nameOf(target)}`;
  }

  #bodyOf(node: Schema): Schema {
    const references = [...REFERENCES].map((key) => node[key]).filter((value) => typeof value === "string");
    const own = without(
      node,
      (key, value) => DEFINITIONS.has(key) || (REFERENCES.has(key) && typeof value === "string"),
    );
    const copy = copiedBelow(own, (below) =>
      this.#targets.has(below) ? { $ref: this.#referenceTo(below) } : this.#bodyOf(below),
    );
    const [first, ...more] = references.map((value) => ({ $ref: this.#referenceTo(this.#targetOf(value)) }));
    if (more.length === 0) return { ...first, ...copy };
    return { ...first, ...copy, allOf: [...asList(copy.allOf), ...more] };
  }
}

/** Definitions of a schema without references say nothing. */
export const withoutDefinitions = (root: Schema): Schema =>
  Object.keys(root).some((key) => DEFINITIONS.has(key)) ? without(root, (key) => DEFINITIONS.has(key)) : root;

/** `root`: a repaired schema, in which each reference leads to a schema. */
export const withDefinitions = (root: Schema): Schema =>
  holdsReference(root) ? new Mover(root).moved() : withoutDefinitions(root);
