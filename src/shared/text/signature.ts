/**
 * A tool's parameters in one line from which a model can make a call, `echo(message: string, times?: integer)`, made
 * from the JSON Schema. Bounded for any schema. Pure.
 */
import { isObject } from "../protocol/values.ts";
import { oneLine } from "./unprintable.ts";

const PARAMETERS = 20;
const ENUM_VALUES = 8;
const TYPE_CHARS = 80;
const DEPTH = 3;

type Schema = Record<string, unknown>;

function literals(values: readonly unknown[]): string {
  const shown = values.slice(0, ENUM_VALUES).map((value) => JSON.stringify(value));
  return [...shown, ...(values.length > ENUM_VALUES ? ["…"] : [])].join(" | ");
}

/** The schema as a TypeScript-like type, `depth` levels deep. */
export function typeOf(schema: unknown, depth: number): string {
  if (!isObject(schema) || depth === 0) return "any";
  if (Array.isArray(schema.enum)) return literals(schema.enum);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union)) {
    return [...new Set(union.slice(0, ENUM_VALUES).map((member) => typeOf(member, depth - 1)))].join(" | ");
  }
  if (schema.type === "array") {
    const items = typeOf(schema.items, depth - 1);
    return items.includes(" | ") ? `(${items})[]` : `${items}[]`;
  }
  if (Array.isArray(schema.type)) return schema.type.join(" | ");
  return typeof schema.type === "string" ? schema.type : "any";
}

const DEFINITION = "#/$defs/";

/** A parameter that refers to a definition, which the declared form may have made of it, has what stands there, too. */
function withDefinition(parameter: unknown, definitions: Schema): unknown {
  if (!isObject(parameter) || typeof parameter.$ref !== "string") return parameter;
  const name = parameter.$ref.startsWith(DEFINITION) ? parameter.$ref.slice(DEFINITION.length) : "";
  const definition = Object.hasOwn(definitions, name) ? definitions[name] : undefined;
  return isObject(definition) ? { ...definition, ...parameter } : parameter;
}

/** Each parameter of an input schema, and its schema. */
export function parametersIn({ properties, $defs }: Schema): [string, unknown][] {
  const definitions = isObject($defs) ? $defs : {};
  return Object.entries(isObject(properties) ? properties : {}).map(([name, parameter]) => [
    name,
    withDefinition(parameter, definitions),
  ]);
}

/** For example `(path: string, head?: number = 10)`. */
export function parameterList(schema: Schema): string {
  const properties = parametersIn(schema);
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const shown = properties.slice(0, PARAMETERS).map(([name, property]) => {
    const preset =
      isObject(property) && property.default !== undefined ? ` = ${JSON.stringify(property.default)}` : "";
    return oneLine(
      `${name}${required.has(name) ? "" : "?"}: ${typeOf(property, DEPTH)}${preset}`,
      TYPE_CHARS,
    );
  });
  if (properties.length > PARAMETERS) shown.push(`… ${properties.length - PARAMETERS} more`);
  return `(${shown.join(", ")})`;
}
