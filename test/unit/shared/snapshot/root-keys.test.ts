/** The part of a schema's root that is kept beside its bytes. */
import { expect, test } from "vitest";
import { type RootKey, rootKeysOf } from "../../../../src/shared/snapshot/contract.ts";

const LONG = `https://example.com/${"a".repeat(100)}`;

test.each<[string, Record<string, unknown>, RootKey[]]>([
  ["nothing", {}, []],
  [
    "values that many tools share, in the order of the schema",
    { $schema: "s", type: "object" },
    [
      ["$schema", "s"],
      ["type", "object"],
    ],
  ],
  [
    "closed",
    { type: "object", additionalProperties: false },
    [
      ["type", "object"],
      ["additionalProperties", false],
    ],
  ],
  [
    "a schema for further properties -> its key only",
    { additionalProperties: { type: "string" } },
    ["additionalProperties"],
  ],
  ["a tool's own texts -> their keys only", { title: "t", description: "d" }, ["title", "description"]],
  ["a dialect too long to be shared -> its key only", { $schema: LONG }, ["$schema"]],
  ["properties, required -> their keys only", { properties: {}, required: [] }, ["properties", "required"]],
])("%s", (_, schema, root) => {
  expect(rootKeysOf(schema)).toEqual(root);
});
