/**
 * A tool's input schema in the form that Pi receives: an ordinary object. Keys whose values differ between most tools
 * are decoded at the first access, so registering thousands of tools decodes no schema.
 */
import { type CatalogTool, inputKeysOf, inputSchemaOf } from "../../catalog/catalog.ts";
import type { RootKey } from "../../shared/snapshot/contract.ts";

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

/**
 * One getter per key, for all tools. If two objects have different getters for one key, V8 turns the second object into
 * a dictionary, which takes four times as long.
 */
const accessors = new Map<string, PropertyDescriptor>();

function accessorOf(key: string): PropertyDescriptor {
  let accessor = accessors.get(key);
  if (!accessor) {
    const get = function (this: object): unknown {
      return readKey(this, key);
    };
    accessor = { enumerable: true, configurable: true, get };
    accessors.set(key, accessor);
  }
  return accessor;
}

/** All properties are own and enumerable, so spread, JSON and structured clone see a plain JSON Schema. */
export function lazyInputSchema(tool: CatalogTool): Schema {
  const schema: Schema = {};
  const rootKeys = inputKeysOf(tool);
  // An index loop and `Reflect`, because an iterator and `Object.defineProperties` take twice as long. That counts for
  // 2,000 tools.
  for (let at = 0; at < rootKeys.length; at++) {
    const entry = rootKeys[at] as RootKey;
    if (typeof entry === "string") Reflect.defineProperty(schema, entry, accessorOf(entry));
    else schema[entry[0]] = entry[1];
  }
  toolOf.set(schema, tool);
  return schema;
}
