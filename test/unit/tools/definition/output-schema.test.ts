/** Owns: the declaration of a tool's result for codemode scripts. */
import { expect, test } from "vitest";
import type { CatalogTool } from "../../../../src/catalog/known.ts";
import { encode } from "../../../../src/shared/protocol/codec.ts";
import { lazyOutputSchema } from "../../../../src/tools/definition/output-schema.ts";
import { makeTool } from "../../make-catalog.ts";

const TOOL = makeTool({ tool: "t" });
const withOutput = (bytes: Uint8Array): CatalogTool => ({
  ...TOOL,
  schemas: { ...TOOL.schemas, output: () => bytes },
});
const COUNT = { type: "object", properties: { count: { type: "number" } } };

test("a tool with an output schema -> a CallToolResult that holds it", () => {
  const schema = lazyOutputSchema(withOutput(encode(COUNT)));
  expect(structuredClone(schema)).toMatchObject({
    type: "object",
    properties: { content: { type: "array" }, structuredContent: COUNT, isError: { type: "boolean" } },
    required: ["content"],
    additionalProperties: true,
  });
  expect(JSON.stringify(schema)).toContain('"count"');
});

test("a tool without an output schema -> any structured content, one object for all such tools", () => {
  expect(lazyOutputSchema(TOOL)).toMatchObject({ properties: { structuredContent: {} } });
  expect(lazyOutputSchema(TOOL)).toBe(lazyOutputSchema(makeTool({ tool: "u" })));
});

test("bytes that nobody reads -> not decoded", () => {
  expect(() => lazyOutputSchema(withOutput(new Uint8Array([0xc1])))).not.toThrow();
});
