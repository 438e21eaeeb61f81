/**
 * The JSON Schema of a configuration file, for completion in editors. scripts/generate-schema.ts writes it; the
 * worker does not load this file.
 */
import * as z from "zod";
import { fileSchema } from "./schema.ts";

/** The text of schema/mcp.schema.json. Draft 7, because every editor knows it. */
export function schemaText(): string {
  const schema = z.toJSONSchema(fileSchema(), { target: "draft-7", io: "input" });
  // For editors alone, which need no indentation: it was a third of the published file. People read docs/configuration.md.
  return `${JSON.stringify(schema)}\n`;
}
