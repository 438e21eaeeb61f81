/** A tool in full for a model: its description, and one line per parameter. Pure. */

import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import { isObject } from "../shared/protocol/is-object.ts";
import { typeOf } from "../shared/text/signature.ts";
import { cut, oneLine } from "../shared/text/unprintable.ts";

const DESCRIPTION_CHARS = 4_000;
const PARAMETER_CHARS = 300;
const NAME_CHARS = 200;
const PARAMETERS = 60;
const DEPTH = 3;

function parameterLine(name: string, schema: unknown, required: boolean): string {
  const type = typeOf(schema, DEPTH);
  const known = isObject(schema) ? schema : {};
  const text = typeof known.description === "string" ? oneLine(known.description, PARAMETER_CHARS) : "";
  const preset = known.default === undefined ? "" : `[default: ${JSON.stringify(known.default)}]`;
  const line = `${name} (${type})${required ? " *required*" : ""}${text === "" ? "" : ` - ${text}`}`;
  return oneLine(line, PARAMETER_CHARS) + (preset === "" ? "" : ` ${oneLine(preset, PARAMETER_CHARS)}`);
}

/** One line per parameter: `path (string) *required* - Where. [default: "."]`. The type lists the values of an enum. */
export function parameterLines(tool: CatalogTool): string[] {
  const schema = inputSchemaOf(tool);
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const lines = properties
    .slice(0, PARAMETERS)
    .map(([name, property]) => parameterLine(name, property, required.has(name)));
  if (properties.length > PARAMETERS) lines.push(`and ${properties.length - PARAMETERS} more`);
  return lines.length > 0 ? lines : ["no parameters"];
}

export function describeTool(tool: CatalogTool): string {
  const parameters = parameterLines(tool).map((line) => `  ${line}`);
  return [
    tool.name,
    `Server: ${oneLine(tool.server.name, NAME_CHARS)}`,
    cut(tool.description, DESCRIPTION_CHARS),
    "Parameters:",
    ...parameters,
  ].join("\n");
}
