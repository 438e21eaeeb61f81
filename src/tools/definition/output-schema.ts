/**
 * The output schema of an MCP tool in Pi: the `CallToolResult` that codemode scripts get, as Pi's built-in MCP declares
 * it. The tool's own schema is that of `structuredContent`, decoded at the first access.
 */
import { type CatalogTool, outputSchemaOf } from "../../catalog/catalog.ts";
import { decode } from "../../shared/protocol/codec.ts";

type Schema = Record<string, unknown>;

/** One object type for every kind of block, because codemode shows this declaration for every tool. */
const CONTENT: Schema = {
  type: "array",
  items: {
    type: "object",
    properties: {
      type: { enum: ["text", "image", "audio", "resource_link", "resource"] },
      text: { type: "string" },
      data: { type: "string" },
      mimeType: { type: "string" },
    },
    required: ["type"],
    additionalProperties: true,
  },
};
const IS_ERROR: Schema = { type: "boolean" };

const resultSchema = (properties: Schema): Schema => ({
  type: "object",
  properties,
  required: ["content"],
  // Newer versions of the protocol add properties.
  additionalProperties: true,
});

/** For a tool without an output schema: the server may send structured content all the same. */
const ANY_RESULT = resultSchema({ content: CONTENT, structuredContent: {}, isError: IS_ERROR });

export function lazyOutputSchema(tool: CatalogTool): Schema {
  const bytes = outputSchemaOf(tool);
  if (!bytes) return ANY_RESULT;
  let decoded: unknown;
  return resultSchema({
    content: CONTENT,
    get structuredContent() {
      decoded ??= decode(bytes);
      return decoded;
    },
    isError: IS_ERROR,
  });
}
