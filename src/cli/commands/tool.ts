/** `tool`: one tool in full, with the schema that counts for `call`. */
import { type CatalogTool, inputSchemaOf, outputSchemaOf } from "../../catalog/catalog.ts";
import { nearestTools, resolveTool } from "../../catalog/search.ts";
import { parameterLines } from "../../report/describe-tool.ts";
import { decode } from "../../shared/protocol/codec.ts";
import { cleanText, oneLine } from "../../shared/text/unprintable.ts";
import { EXIT, usage } from "../console/console.ts";
import type { Command } from "./context.ts";
import { type Known, knownCatalog, noteAge, toolRecord } from "./known.ts";

const NAME_CHARS = 200;

/** A server's words begin with a bar, so that none of their lines passes for a line of ours. */
const barred = (text: string): string[] => text.split("\n").map((line) => `| ${line}`);

async function find({ catalog }: Known, written: string): Promise<CatalogTool> {
  const found = resolveTool(catalog, written);
  if (found.kind === "tool") return found.tool;
  if (found.kind === "several") {
    const names = found.tools.map(({ name }) => name).join(", ");
    throw usage(`Several tools are called ${oneLine(written, NAME_CHARS)}: ${names}.`, "Name one of them.");
  }
  const near = (await nearestTools(catalog, written)).map(({ name }) => name);
  throw usage(
    `No tool named ${oneLine(written, NAME_CHARS)} is known.`,
    near.length > 0
      ? `Near: ${near.join(", ")}.`
      : "pi-mcp-threads tools lists them; --refresh asks the servers.",
  );
}

export const tool: Command = async (context) => {
  const { console } = context;
  const known = await knownCatalog(context);
  const found = await find(known, context.arguments[0] ?? "");
  const schema = inputSchemaOf(found);
  noteAge(context, known, false);
  if (console.json) {
    const output = outputSchemaOf(found);
    const { annotations } = found;
    console.document({
      ...toolRecord(found),
      inputSchema: schema,
      ...(output ? { outputSchema: decode(output) } : {}),
      ...(annotations ? { annotations } : {}),
    });
    return EXIT.ok;
  }
  console.lines([
    found.name,
    `Server: ${oneLine(found.server.name, NAME_CHARS)}`,
    ...barred(cleanText(found.description)),
    "Parameters:",
    ...parameterLines(found).map((line) => `  ${line}`),
    "Schema:",
    cleanText(JSON.stringify(schema, undefined, 2)),
  ]);
  return EXIT.ok;
};
