/**
 * A tool's input schema as Pi gets it: an ordinary object whose root keys are read from their bytes when
 * somebody first looks. Registering thousands of tools then decodes none of them.
 */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";

type Schema = Record<string, unknown>;

const toolOf = new WeakMap<object, CatalogTool>();
const decodedOf = new WeakMap<object, Schema>();

function readKey(schema: object, key: string): unknown {
  let decoded = decodedOf.get(schema);
  if (!decoded) {
    decoded = inputSchemaOf(toolOf.get(schema) as CatalogTool);
    decodedOf.set(schema, decoded);
  }
  return decoded[key];
}

/** Accessors by set of keys: most tools have one of a few sets, and sharing them makes 2,000 schemas cost 3 ms. */
const accessors = new Map<readonly string[], PropertyDescriptorMap>();

function accessorsFor(keys: readonly string[]): PropertyDescriptorMap {
  let found = accessors.get(keys);
  if (!found) {
    found = Object.fromEntries(
      keys.map((key) => [
        key,
        {
          enumerable: true,
          configurable: true,
          get(this: object) {
            return readKey(this, key);
          },
        },
      ]),
    );
    accessors.set(keys, found);
  }
  return found;
}

/** Own, enumerable accessors: spread, JSON and structured clone see a plain JSON Schema. */
export function lazyInputSchema(tool: CatalogTool): Schema {
  const schema: Schema = Object.defineProperties({}, accessorsFor(tool.schemaKeys));
  toolOf.set(schema, tool);
  return schema;
}
