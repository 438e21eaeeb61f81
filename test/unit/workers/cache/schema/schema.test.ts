/** Input schemas are made fit for hosts and providers. */
import { describe, expect, it, test } from "vitest";
import { type Repair, repairLine } from "../../../../../workers/cache/schema/keywords.ts";
import {
  moveReferences,
  normalizeInputSchema,
  repairInputSchema,
  repairOutputSchema,
} from "../../../../../workers/cache/schema/schema.ts";

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

test("normalizeInputSchema: an object schema -> an equal schema; the input is not changed", () => {
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

type Schema = Record<string, unknown>;
const STRING = { type: "string" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });

/** The schema of the only property `a`, with these definitions. */
const inside = (a: unknown, $defs?: Schema): Schema => object({ a }, $defs ? { $defs } : {});

describe("repairInputSchema: the root", () => {
  it.each<[string, unknown, Schema, Repair[]]>([
    ["an object", object({ a: STRING }), object({ a: STRING }), []],
    ["no schema", undefined, ANY, []],
    ["a list", { type: "array", items: STRING }, ANY, ["root"]],
    ["no type", { properties: { a: STRING } }, object({ a: STRING }), ["root"]],
    [
      "a type in capitals, a required name twice",
      { type: "OBJECT", properties: { a: STRING }, required: ["a", "a"] },
      object({ a: STRING }, { required: ["a"] }),
      ["root", "value"],
    ],
    ["a type that is none", { type: null, properties: { a: STRING } }, object({ a: STRING }), ["root"]],
    ["a list in capitals", { type: "ARRAY", items: STRING }, ANY, ["root"]],
    [
      "a union whose part is in capitals",
      { type: "object", anyOf: [{ type: "Object", properties: { a: STRING } }] },
      object({ a: STRING }),
      ["union"],
    ],
    [
      "object or null",
      { type: ["object", "null"], properties: { a: STRING } },
      object({ a: STRING }),
      ["root"],
    ],
    [
      "anyOf: all properties, required where all require it",
      {
        type: "object",
        anyOf: [
          object({ a: STRING, b: STRING }, { required: ["a", "b"] }),
          object({ a: STRING }, { required: ["a"] }),
        ],
      },
      object({ a: STRING, b: STRING }, { required: ["a"] }),
      ["union"],
    ],
    [
      "oneOf: a property of two kinds is either",
      { oneOf: [object({ a: STRING }), object({ a: { type: "number" } }), { type: "string" }] },
      object({ a: { anyOf: [STRING, { type: "number" }] } }),
      ["root", "union"],
    ],
    [
      "oneOf of closed objects: closed",
      {
        type: "object",
        oneOf: [
          object({ a: STRING }, { additionalProperties: false }),
          object({ b: STRING }, { additionalProperties: false }),
        ],
      },
      object({ a: STRING, b: STRING }, { additionalProperties: false }),
      ["union"],
    ],
    [
      "allOf: all of both",
      {
        type: "object",
        properties: { a: STRING },
        allOf: [object({ a: { minLength: 1 }, b: STRING }, { required: ["b"] }), { required: ["a"] }],
      },
      object({ a: { allOf: [STRING, { minLength: 1 }] }, b: STRING }, { required: ["b", "a"] }),
      ["union"],
    ],
    [
      "closed, with parts that name no further properties: stays closed",
      {
        ...object({ a: STRING, b: STRING }, { additionalProperties: false }),
        anyOf: [{ required: ["a"] }, { required: ["b"] }],
        allOf: [{ properties: { b: { minLength: 1 } } }],
      },
      object({ a: STRING, b: { allOf: [STRING, { minLength: 1 }] } }, { additionalProperties: false }),
      ["union"],
    ],
    [
      "open, with a closed part that names all: closed",
      {
        ...object({ a: STRING }),
        allOf: [object({ a: STRING, b: STRING }, { additionalProperties: false })],
      },
      object({ a: STRING, b: STRING }, { additionalProperties: false }),
      ["union"],
    ],
    [
      "closed, with a part that names another: open, since nobody could give that one",
      { ...object({ a: STRING }, { additionalProperties: false }), allOf: [object({ b: STRING })] },
      object({ a: STRING, b: STRING }),
      ["union"],
    ],
    [
      "closed, with itself as a part: open, since not all was looked at",
      { ...object({ a: STRING }, { additionalProperties: false }), allOf: [{ $ref: "#" }] },
      object({ a: STRING }),
      ["union"],
    ],
    [
      "one of several required: the properties stay, none is required",
      { ...object({ a: STRING, b: STRING }), anyOf: [{ required: ["a"] }, { required: ["b"] }] },
      object({ a: STRING, b: STRING }),
      ["union"],
    ],
    [
      "a reference: what it leads to",
      { $ref: "#/$defs/Args", $defs: { Args: object({ a: STRING }, { required: ["a"] }) } },
      object({ a: STRING }, { required: ["a"], $defs: { Args: object({ a: STRING }, { required: ["a"] }) } }),
      ["root", "union"],
    ],
    [
      "what no provider takes",
      { ...object({ a: STRING }), not: { required: ["b"] } },
      object({ a: STRING }),
      ["union"],
    ],
  ])("%s", (_name, raw, schema, repairs) => {
    const before = structuredClone(raw);
    expect(repairInputSchema(raw)).toEqual({ schema, repairs });
    expect(raw).toEqual(before);
  });
});

describe("repairInputSchema: inside", () => {
  const tree = {
    type: "object",
    properties: { children: { type: "array", items: { $ref: "#/$defs/tree" } } },
  };
  it.each<[string, Schema, Schema, Repair[]]>([
    [
      "a reference to a definition",
      inside({ $ref: "#/$defs/x" }, { x: STRING }),
      inside({ $ref: "#/$defs/x" }, { x: STRING }),
      [],
    ],
    ["to the root", inside({ $ref: "#" }), inside({ $ref: "#" }), []],
    ["to a tree", inside({ $ref: "#/$defs/tree" }, { tree }), inside({ $ref: "#/$defs/tree" }, { tree }), []],
    ["to nothing", inside({ $ref: "#/$defs/x", title: "A" }), inside({ title: "A" }), ["reference"]],
    [
      "to a map of schemas",
      inside({ $ref: "#/$defs" }, { x: STRING }),
      inside({}, { x: STRING }),
      ["reference"],
    ],
    [
      "to data that looks like a schema",
      inside({
        default: { b: { pattern: "(a+)+$" } },
        properties: { c: { $ref: "#/properties/a/default/b" } },
      }),
      inside({ default: { b: { pattern: "(a+)+$" } }, properties: { c: {} } }),
      ["reference"],
    ],
    [
      "to a name with a slash, which another reader would take for a path",
      inside({ $ref: "#/$defs/x%2Fdefault" }, { x: { default: { type: "number" } }, "x/default": STRING }),
      inside({ $ref: "#/$defs/x~1default" }, { x: { default: { type: "number" } }, "x/default": STRING }),
      [],
    ],
    [
      "to a name with a percent sign",
      inside({ $ref: "#/$defs/100%25" }, { "100%": STRING }),
      inside({ $ref: "#/$defs/100%25" }, { "100%": STRING }),
      [],
    ],
    ["to another document", inside({ $ref: "https://example.com/x.json" }), inside({}), ["reference"]],
    ["that is no text", inside({ $ref: 5 }), inside({}), ["reference"]],
    [
      "to an anchor",
      inside({ $ref: "#x" }, { x: { $anchor: "x", ...STRING } }),
      inside({ $ref: "#/$defs/x" }, { x: { $anchor: "x", ...STRING } }),
      [],
    ],
    [
      "to and in a schema with an id of its own",
      inside(
        { $ref: "/x" },
        { x: { $id: "/x", properties: { b: { $ref: "#/$defs/y" } }, $defs: { y: STRING } } },
      ),
      inside(
        { $ref: "#/$defs/x" },
        { x: { properties: { b: { $ref: "#/$defs/x/$defs/y" } }, $defs: { y: STRING } } },
      ),
      [],
    ],
    ["to itself", inside({ $ref: "#/properties/a" }), inside({}), ["loop"]],
    [
      "in a circle",
      inside({ $ref: "#/$defs/x" }, { x: { anyOf: [{ $ref: "#/$defs/y" }] }, y: { $ref: "#/$defs/x" } }),
      inside({ $ref: "#/$defs/x" }, { x: { anyOf: [{}] }, y: {} }),
      ["loop"],
    ],
    ["a pattern", inside({ pattern: "^a+$" }), inside({ pattern: "^a+$" }), []],
    [
      "a pattern of another language",
      inside({ ...STRING, pattern: "(?P<x>a)" }),
      inside(STRING),
      ["pattern"],
    ],
    ["a pattern that is no text", inside({ pattern: 5 }), inside({}), ["pattern"]],
    [
      "patterns of property names",
      inside({ patternProperties: { "^x": true, "(": STRING } }),
      inside({ patternProperties: { "^x": true } }),
      ["pattern"],
    ],
    ["boolean schemas", inside(true, { never: false }), inside(true, { never: false }), []],
    [
      "a tuple",
      inside({ type: "array", items: [STRING, true] }),
      inside({ type: "array", items: [STRING, true] }),
      [],
    ],
    ["an unknown type", inside({ type: "str" }), inside({}), ["keyword"]],
    ["an empty enum", inside({ enum: [] }), inside({}), ["keyword"]],
    ["required as a boolean", inside({ ...STRING, required: true }), inside(STRING), ["keyword"]],
    ["an empty union", inside({ anyOf: [] }), inside({}), ["keyword"]],
    [
      "properties that are named like keywords",
      inside(object({ $ref: STRING, pattern: STRING, type: STRING, required: STRING, minimum: STRING })),
      inside(object({ $ref: STRING, pattern: STRING, type: STRING, required: STRING, minimum: STRING })),
      [],
    ],
    [
      "data that looks like a schema",
      inside({ default: { $ref: "nowhere" }, enum: [{ pattern: "(" }], const: { type: "x" } }),
      inside({ default: { $ref: "nowhere" }, enum: [{ pattern: "(" }], const: { type: "x" } }),
      [],
    ],
  ])("%s", (_name, raw, schema, repairs) => {
    expect(repairInputSchema(raw)).toEqual({ schema, repairs });
    // A sound schema stays as it is.
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
  });

  test("100,000 levels -> cut, and the repair is reported", () => {
    let deep: unknown = STRING;
    for (let i = 0; i < 100_000; i++) deep = { type: "array", items: deep };
    const { schema, repairs } = repairInputSchema(inside(deep));
    expect(repairs).toEqual(["depth"]);
    expect(JSON.stringify(schema).length).toBeLessThan(3_000);
  });
});

describe("repairOutputSchema", () => {
  test("no object -> undefined; any root stays", () => {
    expect(repairOutputSchema(undefined)).toBeUndefined();
    expect(repairOutputSchema([])).toBeUndefined();
    const schema = { type: "array", items: { $ref: "#" } };
    expect(repairOutputSchema(schema)).toEqual({ schema, repairs: [] });
  });

  test("moveReferences -> references start at structuredContent, data stays", () => {
    const schema = object({ $ref: { $ref: "#/$defs/x" }, b: { $ref: "#", default: { $ref: "#" } } });
    expect(moveReferences(schema)).toEqual(
      object({
        $ref: { $ref: "#/properties/structuredContent/$defs/x" },
        b: { $ref: "#/properties/structuredContent", default: { $ref: "#" } },
      }),
    );
  });
});

test("repairLine: many tools -> the first few, counted", () => {
  expect(repairLine("pattern", ["a", "b", "c", "d", "e", "f", "g"])).toBe(
    "schemas repaired, a pattern that is not a regular expression was left out: a, b, c, d, e and 2 more",
  );
});
