/** The values that each keyword of a schema may hold. */
import { describe, expect, it, test } from "vitest";
import type { Repair } from "../../../../../workers/cache/schema/keywords.ts";
import { repairInputSchema } from "../../../../../workers/cache/schema/schema.ts";

type Schema = Record<string, unknown>;
const STRING = { type: "string" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });

/** The schema of the only property `a`, with these definitions. */
const inside = (a: unknown, $defs?: Schema): Schema => object({ a }, $defs ? { $defs } : {});

/** Values in the place of a schema that are not schemas. */
const NONE = [null, "string", 5, []];

describe("repairInputSchema: a value that is not a schema in the place of one", () => {
  const rows = NONE.flatMap((none): [string, Schema, Schema, Repair][] => [
    ["properties", { properties: { b: none } }, { properties: { b: {} } }, "schema"],
    [
      "patternProperties",
      { patternProperties: { "^b": none } },
      { patternProperties: { "^b": {} } },
      "schema",
    ],
    ["dependentSchemas", { dependentSchemas: { b: none } }, { dependentSchemas: { b: {} } }, "schema"],
    ["$defs", { $defs: { b: none } }, { $defs: { b: {} } }, "schema"],
    ["definitions", { definitions: { b: none } }, { definitions: { b: {} } }, "schema"],
    ["items, by position", { items: [none, STRING] }, { items: [{}, STRING] }, "schema"],
    ["prefixItems", { prefixItems: [STRING, none] }, { prefixItems: [STRING, {}] }, "schema"],
    ["allOf", { allOf: [none, STRING] }, { allOf: [STRING] }, "keyword"],
    ["anyOf", { anyOf: [none, STRING] }, {}, "keyword"],
    ["oneOf", { oneOf: [none, STRING] }, {}, "keyword"],
    ...["not", "if", "then", "else", "contains", "propertyNames", "contentSchema", "additionalItems"].map(
      (key): [string, Schema, Schema, Repair] => [key, { [key]: none }, {}, "keyword"],
    ),
    ...["additionalProperties", "unevaluatedProperties", "unevaluatedItems"].map(
      (key): [string, Schema, Schema, Repair] => [key, { [key]: none }, {}, "keyword"],
    ),
  ]);
  it.each(rows)("%s: %o", (_name, raw, schema, repair) => {
    expect(repairInputSchema(inside(raw))).toEqual({ schema: inside(schema), repairs: [repair] });
    expect(repairInputSchema(inside(schema))).toEqual({ schema: inside(schema), repairs: [] });
  });

  it.each<[string, Schema, Schema, Repair[]]>([
    ["properties of the root", object({ a: null }), object({ a: {} }), ["schema"]],
    ["properties of no map", inside({ properties: [STRING] }), inside({}), ["keyword"]],
    ["dependencies", inside({ dependencies: { b: 5 } }), inside({ dependencies: { b: {} } }), ["schema"]],
    [
      "dependencies on names",
      inside({ dependencies: { b: ["c", 5], d: STRING } }),
      inside({ dependencies: { b: ["c"], d: STRING } }),
      ["value"],
    ],
    ["items that are a number", inside({ items: 5 }), inside({}), ["keyword"]],
    ["prefixItems that are a schema", inside({ prefixItems: STRING }), inside({}), ["keyword"]],
    ["an empty prefixItems", inside({ prefixItems: [] }), inside({}), ["keyword"]],
    ["allOf of nothing sound", inside({ allOf: [null] }), inside({}), ["keyword"]],
    [
      "a reference to it",
      inside({ $ref: "#/$defs/x" }, { x: null }),
      inside({}, { x: {} }),
      ["reference", "schema"],
    ],
    [
      "a reference to what is left out with it",
      object({ a: { anyOf: [STRING, 5] }, b: { $ref: "#/properties/a/anyOf/0" } }),
      object({ a: {}, b: {} }),
      ["keyword", "reference"],
    ],
    [
      "properties that refer to a map",
      inside(object({ $ref: "#/$defs/x" }, { additionalProperties: false }), { x: { b: STRING } }),
      inside(object({}), { x: { b: STRING } }),
      ["reference"],
    ],
  ])("%s", (_name, raw, schema, repairs) => {
    expect(repairInputSchema(raw)).toEqual({ schema, repairs });
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
  });
});

describe("repairInputSchema: values that their keyword cannot have", () => {
  const TEXT = ["title", "description", "format", "$schema", "$anchor", "$comment", "contentEncoding"];
  const COUNT = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
  const FLAG = ["uniqueItems", "deprecated", "readOnly", "writeOnly"];
  const rows: [string, unknown[], unknown[]][] = [
    ...TEXT.map((key): [string, unknown[], unknown[]] => [key, ["", "x"], [5, null, {}, [], true]]),
    ...COUNT.map((key): [string, unknown[], unknown[]] => [key, [0, 7], [-1, 1.5, "5", null, true]]),
    ...FLAG.map((key): [string, unknown[], unknown[]] => [key, [true, false], ["true", 1, null]]),
    ["minimum", [0, -1.5], ["0", null, []]],
    ["exclusiveMaximum", [0, -1.5], ["0", null, []]],
    ["multipleOf", [0.1, 2], [0, -2, "2", null]],
    ["type", ["string", ["string", "null"]], ["any", "", 5, null, [], ["string", "any"], {}]],
    ["enum", [["a", 1, null, {}]], ["a", {}, [], null, 5]],
    ["required", [[], ["a"]], [true, "a", null, { a: true }]],
    ["additionalProperties", [true, false, {}], ["false", 0, null]],
    ["dependentRequired", [{ b: ["c"] }], [{ b: "c" }, { b: [5] }, [], null]],
    ["examples", [[], [{}]], ["x", {}]],
  ];
  it.each(rows)("%s: %j stay, %j go", (key, sound, unsound) => {
    for (const value of sound) {
      const schema = inside({ [key]: value });
      expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
    }
    for (const value of unsound) {
      expect(repairInputSchema(inside({ [key]: value }))).toEqual({
        schema: inside({}),
        repairs: ["keyword"],
      });
    }
  });

  it.each<[string, Schema, Schema]>([
    ["a type in capitals", { type: "STRING" }, { type: "string" }],
    ["types in capitals", { type: ["Integer", "null"] }, { type: ["integer", "null"] }],
    ["a type twice", { type: ["string", "string"] }, { type: ["string"] }],
    [
      "a required name twice, and what is none",
      { required: ["a", "b", "a", null] },
      { required: ["a", "b"] },
    ],
    ["a value twice", { enum: ["a", 1, "a", "1", 1] }, { enum: ["a", 1, "1"] }],
    ["a limit of draft 4", { minimum: 1, exclusiveMinimum: true }, { exclusiveMinimum: 1 }],
    [
      "limits of draft 4",
      { minimum: 1, maximum: 5, exclusiveMinimum: false, exclusiveMaximum: true },
      { minimum: 1, exclusiveMaximum: 5 },
    ],
    ["a flag of draft 4 without a limit", { type: "number", exclusiveMaximum: true }, { type: "number" }],
  ])("%s -> what it means", (_name, raw, schema) => {
    expect(repairInputSchema(inside(raw))).toEqual({ schema: inside(schema), repairs: ["value"] });
    expect(repairInputSchema(inside(schema))).toEqual({ schema: inside(schema), repairs: [] });
  });

  test("below an unknown keyword, names that look like keywords are names", () => {
    const components = { schemas: { title: STRING, required: object({ a: STRING }), properties: STRING } };
    const refs = ["title", "required", "properties"].map((name) => ({
      $ref: `#/components/schemas/${name}`,
    }));
    const schema = object({ a: { anyOf: refs } }, { components });
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
  });
});
