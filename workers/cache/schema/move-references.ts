/**
 * Moves the references of an output schema. In the output schema of a Pi tool it describes `structuredContent`, so its
 * references must start from there. Expects a repaired schema, whose references all start at the root. Pure.
 */
import { STRUCTURED_POINTER } from "../../../src/shared/snapshot/snapshot.ts";
import { MAPS } from "./keywords.ts";

const DATA = new Set(["const", "enum", "default", "examples", "example"]);
const REFERENCES = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

function moveEntry([key, value]: [string, unknown]): [string, unknown] {
  if (DATA.has(key)) return [key, value];
  if (REFERENCES.has(key) && typeof value === "string") return [key, STRUCTURED_POINTER + value.slice(1)];
  if (!MAPS.has(key) || typeof value !== "object" || value === null) return [key, moveReferences(value)];
  return [
    key,
    Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, moveReferences(schema)])),
  ];
}

/** A copy whose references start at `STRUCTURED_POINTER`. */
export function moveReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(moveReferences);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).map(moveEntry));
}
