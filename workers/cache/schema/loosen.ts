/**
 * What stands around a part of a schema from which something was left out. The part takes more than before, so
 * whatever turns that around is loosened, too: the schema never refuses what the server would take. Pure.
 */
import { REFERENCES } from "./references.ts";

type Schema = Record<string, unknown>;

/** Where in a schema something was left out. */
export interface LooseParts {
  /** Keywords, itself or below it. */
  below: Set<string>;
  /** Names of properties, or patterns of names, are gone. */
  names: boolean;
}

export interface Loosening {
  /** Something was left out elsewhere: a reference may lead to where it was. */
  wasLoosened: boolean;
  repaired: (repair: "choice") => void;
}

/** Keywords that decide what the others of the same schema mean. */
const CONDITION = ["if", "then", "else"] as const;
/** They judge the properties that the same schema does not name. */
const JUDGES_OTHERS = ["additionalProperties", "unevaluatedProperties"] as const;
/** They judge what no part of the schema looked at. */
const JUDGES_REST = ["unevaluatedProperties", "unevaluatedItems"] as const;

/** Whether a reference stands anywhere in it. */
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

export function loosened(schema: Schema, parts: LooseParts, { wasLoosened, repaired }: Loosening): Schema {
  const isLoose = (key: string): boolean =>
    Object.hasOwn(schema, key) && (parts.below.has(key) || (wasLoosened && holdsReference(schema[key])));
  const gone = new Set<string>();
  // It would refuse everything, or more than it did.
  if (isLoose("not")) gone.add("not");
  if (isLoose("if")) for (const key of CONDITION) gone.add(key);
  if (parts.names) for (const key of JUDGES_OTHERS) gone.add(key);
  // More items count.
  if (isLoose("contains")) gone.add("maxContains");
  const judgesRest = JUDGES_REST.some((key) => Object.hasOwn(schema, key));
  if (judgesRest && (parts.below.size > 0 || holdsReference(schema)))
    for (const key of JUDGES_REST) gone.add(key);
  const entries = Object.entries(schema).filter(([key, value]) => !(gone.has(key) && value !== true));
  // Several parts may take one value now.
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

/** The schema with words of ours behind its own. */
export function withText(schema: Schema, texts: readonly string[]): Schema {
  const own = typeof schema.description === "string" ? schema.description.trimEnd() : "";
  const description = [...(own === "" ? [] : [own]), ...texts].join(" ");
  return { ...schema, description };
}
