/**
 * A tool's input schema as Pi gets it: an ordinary object whose root keys are read from their bytes when
 * somebody first looks. Registering thousands of tools then decodes none of them.
 */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";

/** Own, enumerable accessors: spread, JSON and structured clone see a plain JSON Schema. */
export function lazyInputSchema(tool: CatalogTool): Record<string, unknown> {
  let decoded: Record<string, unknown> | undefined;
  const schema: Record<string, unknown> = {};
  for (const key of tool.schemaKeys) {
    Object.defineProperty(schema, key, {
      enumerable: true,
      configurable: true,
      get: () => {
        decoded ??= inputSchemaOf(tool);
        return decoded[key];
      },
    });
  }
  return schema;
}
