/** The text of `/mcp tool`: a tool in full, with the schema that its server declares and the one that the model gets. Pure. */

import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import { isObject } from "../shared/protocol/values.ts";
import { parametersIn, typeOf } from "../shared/text/signature.ts";
import { cleanText, cut, oneLine } from "../shared/text/unprintable.ts";

const DESCRIPTION_CHARS = 4_000;
const PARAMETER_CHARS = 300;
const SERVER_CHARS = 200;
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
  const properties = parametersIn(schema);
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
    `Server: ${oneLine(tool.server.name, SERVER_CHARS)}`,
    cut(tool.description, DESCRIPTION_CHARS),
    "Parameters:",
    ...parameters,
  ].join("\n");
}

const SCHEMA_CHARS = 20_000;
const NAME_CHARS = 200;

const shown = (schema: string): string => cut(cleanText(schema), SCHEMA_CHARS);

const namesOf = (tools: readonly CatalogTool[]): string => tools.map(({ name }) => name).join(", ");

/** `near`: tools that may be meant. */
export function unknownToolText(name: string, near: readonly CatalogTool[]): string {
  const meant = near.length === 0 ? "" : ` Did you mean ${near.map(({ name }) => name).join(" or ")}?`;
  return `No tool named ${oneLine(name, NAME_CHARS)} is known.${meant} /mcp tools lists them.`;
}

export const severalToolsText = (name: string, tools: readonly CatalogTool[]): string =>
  `Several tools are called ${oneLine(name, NAME_CHARS)}: ${namesOf(tools.slice(0, PARAMETERS))}. Name one of them.`;

/** `declared`: the input schema as the server listed it, as indented JSON. */
export function renderTool(tool: CatalogTool, declared: string | undefined): string {
  const given = JSON.stringify(inputSchemaOf(tool), undefined, 2);
  const schemas =
    declared === given
      ? ["The schema, as the server declares it:", shown(given)]
      : [
          "The schema as the server declares it:",
          declared === undefined ? "none that could be kept" : shown(declared),
          "The schema that the model gets, with the repairs that hosts and providers need:",
          shown(given),
        ];
  return [describeTool(tool), ...schemas].join("\n");
}
