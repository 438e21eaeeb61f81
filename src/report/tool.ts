/** The text of `/mcp tool`: a tool in full, with the schema that its server declares and the one that the model gets. Pure. */
import { type CatalogTool, inputSchemaOf } from "../catalog/catalog.ts";
import { cleanText, cut, oneLine } from "../shared/text/unprintable.ts";
import { describeTool } from "./describe-tool.ts";

const SCHEMA_CHARS = 20_000;
const NAME_CHARS = 200;

const shown = (schema: string): string => cut(cleanText(schema), SCHEMA_CHARS);

export const unknownToolText = (name: string): string =>
  `No tool named ${oneLine(name, NAME_CHARS)} is known. /mcp tools lists them.`;

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
