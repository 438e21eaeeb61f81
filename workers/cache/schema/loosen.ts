/**
 * Loosens the schema around a part that was left out. Without the part the schema takes more values. Keywords that
 * invert this, such as `not`, are left out too, so that the schema never refuses a value that the server would take.
 * Pure.
 */
import { REFERENCES } from "./references.ts";

type Schema = Record<string, unknown>;

/** Where parts of a schema were left out. */
export interface LooseParts {
  /** Keywords that were left out, or that hold a part that was. */
  below: Set<string>;
  /** True if names of properties, or patterns of names, are gone. */
  names: boolean;
}

export interface Loosening {
  /** A part was left out elsewhere, and a reference may lead to its former position. */
  wasLoosened: boolean;
  repaired: (repair: "choice") => void;
}

/** A condition and its branches: without the condition the branches mean nothing. */
const CONDITION = ["if", "then", "else"] as const;
/** Keywords that judge the properties without a name in the same schema. */
const JUDGES_OTHERS = ["additionalProperties", "unevaluatedProperties"] as const;
/** Keywords that judge the properties and items that no other part of the schema judged. */
const JUDGES_REST = ["unevaluatedProperties", "unevaluatedItems"] as const;

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

/** The schema without the keywords that would now refuse more than before; the same object if nothing has to change. */
export function loosened(schema: Schema, parts: LooseParts, { wasLoosened, repaired }: Loosening): Schema {
  const isLoose = (key: string): boolean =>
    Object.hasOwn(schema, key) && (parts.below.has(key) || (wasLoosened && holdsReference(schema[key])));
  const gone = new Set<string>();
  // With less below it, `not` would refuse everything, or more than before.
  if (isLoose("not")) gone.add("not");
  if (isLoose("if")) for (const key of CONDITION) gone.add(key);
  if (parts.names) for (const key of JUDGES_OTHERS) gone.add(key);
  // A looser `contains` counts more items.
  if (isLoose("contains")) gone.add("maxContains");
  const judgesRest = JUDGES_REST.some((key) => Object.hasOwn(schema, key));
  if (judgesRest && (parts.below.size > 0 || holdsReference(schema)))
    for (const key of JUDGES_REST) gone.add(key);
  const entries = Object.entries(schema).filter(([key, value]) => !(gone.has(key) && value !== true));
  // Several alternatives may now take the same value, so `oneOf` becomes `anyOf`.
  const becomesAny = isLoose("oneOf");
  const changed = becomesAny || entries.length < Object.keys(schema).length;
  if (!changed) return schema;
  repaired("choice");
  if (!becomesAny) return Object.fromEntries(entries);
  if (!Object.hasOwn(schema, "anyOf")) {
    return Object.fromEntries(entries.map(([key, value]) => [key === "oneOf" ? "anyOf" : key, value]));
  }
  const either = { anyOf: schema.oneOf };
  const all = Array.isArray(schema.allOf) ? schema.allOf : [];
  return { ...Object.fromEntries(entries.filter(([key]) => key !== "oneOf")), allOf: [...all, either] };
}

/** The schema with further sentences at the end of its description. */
export function withText(schema: Schema, texts: readonly string[]): Schema {
  const own = typeof schema.description === "string" ? schema.description.trimEnd() : "";
  const description = [...(own === "" ? [] : [own]), ...texts].join(" ");
  return { ...schema, description };
}
