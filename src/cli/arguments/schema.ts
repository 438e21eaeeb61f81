/**
 * What a JSON Schema of a server says about one parameter, as far as the command line needs it. The schema is foreign: a
 * reference is followed a few times, and anything odd counts as "any value". Pure.
 */
import { isObject } from "../../shared/protocol/is-object.ts";

export type Schema = Record<string, unknown>;

const REFERENCES = 10;
const MEMBERS = 20;

function pointed(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** The schema behind references; an empty one for anything that is no schema. */
export function resolved(schema: unknown, root: Schema): Schema {
  let at = schema;
  for (let count = 0; isObject(at) && typeof at.$ref === "string" && count < REFERENCES; count++) {
    at = pointed(root, at.$ref);
  }
  return isObject(at) && typeof at.$ref !== "string" ? at : {};
}

/** The schemas of which one must fit: the members of a union, or of a list of types, or the schema itself. */
export function alternatives(schema: Schema, root: Schema): Schema[] {
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union) && union.length > 0) {
    return union.slice(0, MEMBERS).flatMap((member) => {
      const one = resolved(member, root);
      return one.anyOf === undefined && one.oneOf === undefined ? alternatives(one, root) : [{}];
    });
  }
  if (Array.isArray(schema.type)) return schema.type.slice(0, MEMBERS).map((type) => ({ ...schema, type }));
  return [schema];
}

/** The declared properties by name; none for a schema that declares none. */
export const propertiesOf = (schema: Schema): Schema =>
  isObject(schema.properties) ? schema.properties : {};

/** Names of the properties that must be there. */
export const requiredOf = (schema: Schema): string[] =>
  Array.isArray(schema.required)
    ? schema.required.filter((name): name is string => typeof name === "string")
    : [];

/** Whether names that the schema does not declare are meant to be given. */
export const takesOthers = (schema: Schema): boolean =>
  schema.additionalProperties === true ||
  isObject(schema.additionalProperties) ||
  isObject(schema.patternProperties) ||
  Object.keys(propertiesOf(schema)).length === 0;
