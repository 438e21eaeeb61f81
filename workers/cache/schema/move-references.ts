/**
 * An output schema on its way into that of a Pi tool: there it describes `structuredContent`, so that its
 * references must start from that place. Expects a repaired schema, whose references all start at the root.
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

/** A copy with moved references. */
export function moveReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(moveReferences);
  if (typeof schema !== "object" || schema === null) return schema;
  return Object.fromEntries(Object.entries(schema).map(moveEntry));
}
