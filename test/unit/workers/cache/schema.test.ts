/** Owns: input schemas made fit for hosts and providers. */
import { expect, it, test } from "vitest";
import { normalizeInputSchema } from "../../../../workers/cache/schema.ts";

const ANY = { type: "object", properties: {} };

it.each([
  ["undefined", undefined, ANY],
  ["null", null, ANY],
  ["true", true, ANY],
  ["an array", [], ANY],
  ["a text", "object", ANY],
  ["an empty object", {}, ANY],
  ["a root of type string", { type: "string" }, ANY],
  ["a root of several types", { type: ["object", "null"] }, ANY],
  ["no properties", { type: "object", additionalProperties: true }, { ...ANY, additionalProperties: true }],
  ["properties that are an array", { type: "object", properties: [] }, ANY],
  ["properties without type", { properties: { a: {} } }, { type: "object", properties: { a: {} } }],
])("normalizeInputSchema: %s -> $2", (_name, schema, normal) => {
  expect(normalizeInputSchema(schema)).toEqual(normal);
});

test("normalizeInputSchema: an object schema -> nothing of it changed, the input left alone", () => {
  const schema = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { a: { anyOf: [{ type: "string" }, { $ref: "#/$defs/x" }] } },
    required: ["a"],
    $defs: { x: { const: 1 } },
  };
  const before = structuredClone(schema);
  expect(normalizeInputSchema(schema)).toEqual(before);
  expect(schema).toEqual(before);
});
