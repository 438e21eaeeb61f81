/**
 * The JSON Schema of a configuration file, for completion in editors. scripts/generate-schema.ts writes it; the
 * worker does not load this file.
 */
import * as z from "zod";
import { fileSchema } from "./schema.ts";

/** The text of schema/mcp.schema.json. Draft 7, because every editor knows it. */
export function schemaText(): string {
  const schema = z.toJSONSchema(fileSchema(), { target: "draft-7", io: "input" });
  // Indented by tabs, because spaces were a third of the published file.
  return `${JSON.stringify(schema, null, "\t")}\n`;
}
