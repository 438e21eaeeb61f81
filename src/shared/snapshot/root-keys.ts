/**
 * The root of an input schema as far as main needs it before anybody looks at the schema: which keys it has, in
 * their order, and the values that nearly all tools share. What is not here is read from the schema's bytes.
 */

/** A key of the root, with its value where that is one of a few. */
export type RootKey = string | readonly [key: string, value: string | boolean];

const SHARED = new Set(["type", "additionalProperties", "$schema"]);
/** The address of a JSON Schema dialect has about 50; a longer text is one tool's own. */
const SHARED_CHARS = 100;

const isShared = (key: string, value: unknown): value is string | boolean =>
  SHARED.has(key) &&
  (typeof value === "boolean" || (typeof value === "string" && value.length <= SHARED_CHARS));

export const rootKeysOf = (schema: object): RootKey[] =>
  Object.entries(schema).map(([key, value]) => (isShared(key, value) ? [key, value] : key));
