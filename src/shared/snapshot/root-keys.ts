/**
 * The root of an input schema as far as main needs it before the schema is read: its keys in their order, and the values
 * that nearly all tools share. Other values are read from the schema's bytes.
 */

/** A key of the root, with its value if many tools share that value. */
export type RootKey = string | readonly [key: string, value: string | boolean];

const SHARED = new Set(["type", "additionalProperties", "$schema"]);
/** The URL of a JSON Schema dialect has about 50 characters; a longer text is specific to one tool. */
const SHARED_CHARS = 100;

const isShared = (key: string, value: unknown): value is string | boolean =>
  SHARED.has(key) &&
  (typeof value === "boolean" || (typeof value === "string" && value.length <= SHARED_CHARS));

export const rootKeysOf = (schema: object): RootKey[] =>
  Object.entries(schema).map(([key, value]) => (isShared(key, value) ? [key, value] : key));
