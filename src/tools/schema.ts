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

interface Accessor {
  key: string;
  descriptor: PropertyDescriptor;
}

/** Accessors by set of keys: most tools have one of a few sets. */
const accessors = new Map<readonly string[], readonly Accessor[]>();

function accessorsFor(keys: readonly string[]): readonly Accessor[] {
  let found = accessors.get(keys);
  if (!found) {
    found = keys.map((key) => {
      const get = function (this: object): unknown {
        return readKey(this, key);
      };
      return { key, descriptor: { enumerable: true, configurable: true, get } };
    });
    accessors.set(keys, found);
  }
  return found;
}

/** Own, enumerable accessors: spread, JSON and structured clone see a plain JSON Schema. */
export function lazyInputSchema(tool: CatalogTool): Schema {
  const schema: Schema = {};
  // One by one through `Reflect`: half the time of `Object.defineProperties`, which counts for 2,000 tools.
  for (const { key, descriptor } of accessorsFor(tool.schemaKeys)) {
    Reflect.defineProperty(schema, key, descriptor);
  }
  toolOf.set(schema, tool);
  return schema;
}
