/**
 * The output schema of a Pi tool that stands for an MCP tool: the `CallToolResult` that codemode scripts get,
 * as Pi's built-in MCP declares it, with the tool's own schema as `structuredContent`, read from its bytes
 * when somebody first looks.
 */
import { type CatalogTool, outputSchemaOf } from "../../catalog/catalog.ts";
import { decode } from "../../shared/protocol/codec.ts";

type Schema = Record<string, unknown>;

/** Every kind of block as one, since its declaration is shown for every tool. */
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
  // What newer versions of the protocol add.
  additionalProperties: true,
});

/** A server may send structured content without a schema for it. */
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
