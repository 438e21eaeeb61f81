/**
 * Makes a tool's input schema fit for hosts and providers: the root is an object schema. The meaning of
 * a schema that already is one is not changed.
 */
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** MCP 2025-11-25, server/tools: `inputSchema` is a JSON Schema of type object. Anything else takes any object. */
export function normalizeInputSchema(schema: unknown): Record<string, unknown> {
  if (!isObject(schema)) return { type: "object", properties: {} };
  if (schema.type !== undefined && schema.type !== "object") return { type: "object", properties: {} };
  const properties = isObject(schema.properties) ? schema.properties : {};
  return { ...schema, type: "object", properties };
}
