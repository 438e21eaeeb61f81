/** Input schemas are made fit for hosts and providers. */

import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { type Repair, repairLine } from "../../../../../workers/cache/schema/keywords.ts";
import {
  cleanSchema,
  moveReferences,
  normalizeInputSchema,
  repairInputSchema,
  repairOutputSchema,
} from "../../../../../workers/cache/schema/schema.ts";

const ANY = { type: "object", properties: {} };
/** What stands for a schema that takes any value. */
const ANYTHING = { description: "Any value." };
const STRING = { type: "string" };

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
  ["properties without type", { properties: { a: STRING } }, { type: "object", properties: { a: STRING } }],
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
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });

/** The schema of the only property `a`, with these definitions. */
const inside = (a: unknown, $defs?: Schema): Schema => object({ a }, $defs ? { $defs } : {});

/** Takes `a`, and names that match a pattern. */
const byPattern = object(
  { a: STRING },
  { patternProperties: { "^x-": STRING }, additionalProperties: false },
);

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
      object({ a: STRING }, { required: ["a"] }),
      ["root", "union"],
    ],
    [
      "a reference to what takes names by a pattern: open",
      { $ref: "#/$defs/Args", $defs: { Args: byPattern } },
      object({ a: STRING }),
      ["root", "union"],
    ],
    [
      "a closed part of it beside a part that takes names by a pattern: open",
      { type: "object", anyOf: [object({ b: STRING }, { additionalProperties: false }), byPattern] },
      object({ b: STRING, a: STRING }),
      ["union"],
    ],
    [
      "closed, with a pattern of its own that stays: closed",
      { ...byPattern, allOf: [{ required: ["a"] }] },
      { ...byPattern, required: ["a"] },
      ["union"],
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
    [
      "to the root",
      inside({ $ref: "#" }),
      inside({ $ref: "#/$defs/root" }, { root: inside({ $ref: "#/$defs/root" }) }),
      [],
    ],
    ["to a tree", inside({ $ref: "#/$defs/tree" }, { tree }), inside({ $ref: "#/$defs/tree" }, { tree }), []],
    ["to nothing", inside({ $ref: "#/$defs/x", title: "A" }), inside({ title: "A" }), ["reference"]],
    ["to a map of schemas", inside({ $ref: "#/$defs" }, { x: STRING }), inside(ANYTHING), ["reference"]],
    [
      "to data that looks like a schema",
      inside({
        default: { b: { pattern: "(a+)+$" } },
        properties: { c: { $ref: "#/properties/a/default/b" } },
      }),
      inside({ default: { b: { pattern: "(a+)+$" } }, properties: { c: ANYTHING } }),
      ["reference"],
    ],
    [
      "to a name with a slash, which another reader would take for a path",
      inside({ $ref: "#/$defs/x%2Fdefault" }, { x: { default: { type: "number" } }, "x/default": STRING }),
      inside({ $ref: "#/$defs/x_default" }, { x_default: STRING }),
      [],
    ],
    [
      "to a name with a percent sign",
      inside({ $ref: "#/$defs/100%25" }, { "100%": STRING }),
      inside({ $ref: "#/$defs/100_" }, { "100_": STRING }),
      [],
    ],
    ["to another document", inside({ $ref: "https://example.com/x.json" }), inside(ANYTHING), ["reference"]],
    ["that is no text", inside({ $ref: 5 }), inside(ANYTHING), ["reference"]],
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
      inside({ $ref: "#/$defs/x" }, { x: { properties: { b: { $ref: "#/$defs/y" } } }, y: STRING }),
      [],
    ],
    ["to itself", inside({ $ref: "#/properties/a" }), inside(ANYTHING), ["loop"]],
    [
      "in a circle",
      inside({ $ref: "#/$defs/x" }, { x: { anyOf: [{ $ref: "#/$defs/y" }] }, y: { $ref: "#/$defs/x" } }),
      inside({ $ref: "#/$defs/x" }, { x: { anyOf: [ANYTHING] } }),
      ["loop"],
    ],
    ["a pattern", inside({ pattern: "^a+$" }), inside({ pattern: "^a+$" }), []],
    [
      "a pattern of another language",
      inside({ ...STRING, pattern: "(?P<x>a)" }),
      inside(STRING),
      ["pattern"],
    ],
    ["a pattern that is no text", inside({ pattern: 5 }), inside(ANYTHING), ["pattern"]],
    [
      "patterns of property names",
      inside({ patternProperties: { "^x": true, "(": STRING } }),
      inside({ patternProperties: { "^x": true } }),
      ["pattern"],
    ],
    ["an unknown type", inside({ type: "str" }), inside(ANYTHING), ["keyword"]],
    ["an empty enum", inside({ enum: [] }), inside(ANYTHING), ["keyword"]],
    ["required as a boolean", inside({ ...STRING, required: true }), inside(STRING), ["keyword"]],
    ["an empty union", inside({ anyOf: [] }), inside(ANYTHING), ["keyword"]],
    [
      "properties that are named like keywords",
      inside(object({ $ref: STRING, pattern: STRING, type: STRING, required: STRING, minimum: STRING })),
      inside(object({ $ref: STRING, pattern: STRING, type: STRING, required: STRING, minimum: STRING })),
      [],
    ],
    [
      "data that looks like a schema",
      inside({
        type: "object",
        default: { $ref: "nowhere" },
        enum: [{ pattern: "(" }],
        const: { type: "x" },
      }),
      inside({
        type: "object",
        default: { $ref: "nowhere" },
        enum: [{ pattern: "(" }],
        const: { type: "x" },
      }),
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

const HIDDEN = "\u{e0049}\u{e0047}\u200b\u200b";

describe("cleanSchema", () => {
  it.each<[string, Schema, Schema]>([
    [
      "a description keeps its lines and loses what is hidden",
      object({ a: { type: "string", description: `Where.\n\n- one${HIDDEN}\u001b[2J\u202e` } }),
      object({ a: { type: "string", description: "Where.\n\n- one" } }),
    ],
    ["a title", object({}, { title: `T${HIDDEN}` }), object({}, { title: "T" })],
    [
      "words below an unknown keyword",
      object({}, { "x-doc": [`a${HIDDEN}`] }),
      object({}, { "x-doc": ["a"] }),
    ],
    [
      "one value of an enum",
      object({ a: { enum: ["a", `b${HIDDEN}`, 3] } }),
      object({ a: { enum: ["a", 3] } }),
    ],
    ["all values of an enum", object({ a: { enum: [HIDDEN] } }), object({ a: {} })],
    [
      "half of a character, which no provider reads, beside the text of its escape",
      object({
        a: { enum: ["a\ud83d", "\\ud83d", "😀"], const: "\udc00", default: ["\ud83d"], pattern: "^\ud83d$" },
      }),
      object({ a: { enum: ["\\ud83d", "😀"] } }),
    ],
    [
      "a default, an example, a constant, a pattern",
      object({
        a: { default: { b: [HIDDEN] }, examples: [HIDDEN], const: HIDDEN, pattern: HIDDEN, type: "string" },
      }),
      object({ a: { type: "string" } }),
    ],
    [
      "properties that are called as keywords are",
      object({ enum: { description: `a${HIDDEN}` }, default: { enum: ["a"] }, pattern: {}, properties: {} }),
      object({ enum: { description: "a" }, default: { enum: ["a"] }, pattern: {}, properties: {} }),
    ],
    [
      "a very long description",
      object({ a: { description: "x".repeat(99_999) } }),
      object({ a: { description: `${"x".repeat(LIMITS.descriptionChars - 1)}…` } }),
    ],
  ])("%s", (_name, schema, expected) => {
    expect(cleanSchema(schema)).toEqual(expected);
  });

  it.each<[string, Schema]>([
    ["delimiters as data", object({ sep: { enum: ["\t", "\n", ",", "\u0000"], default: "\t" } })],
    ["several lines", object({ a: { description: 'One.\n\tTwo: "quoted" \\ and /.\n' } })],
    ["scripts and emoji", object({ مسیر: { description: "می‌خواهم 👩🏽‍🚀", enum: ["天气", "é"] } })],
    ["references", object({ a: { $ref: "#/$defs/b" } }, { $defs: { b: { type: "string" } } })],
    ["__proto__ as a name", object(JSON.parse('{"__proto__": {"type": "string"}}') as Schema)],
  ])("%s -> as it is", (_name, schema) => {
    expect(JSON.stringify(cleanSchema(schema))).toBe(JSON.stringify(schema));
  });

  it.each<[string, Schema]>([
    ["a property", object({ [`a${HIDDEN}`]: {} })],
    ["a property deep inside", object({ a: { items: object({ [`b${HIDDEN}`]: {} }) } })],
    ["a definition", object({}, { $defs: { [`a${HIDDEN}`]: {} } })],
    ["a reference", object({ a: { $ref: `#/$defs/a${HIDDEN}` } })],
    ["a keyword", object({}, { [`x${HIDDEN}`]: 1 })],
  ])("hidden characters in the name of %s -> the schema is not used", (_name, schema) => {
    expect(cleanSchema(schema)).toBeUndefined();
  });

  test("nothing to do -> the same object", () => {
    const schema = object({ a: { type: "string", description: "A." } });
    expect(cleanSchema(schema)).toBe(schema);
  });
});

describe("repairInputSchema: names of parameters", () => {
  const LONGEST = "k".repeat(64);
  it.each(["", "a b", "filter[id]", "$top", "é", "a/b", `${LONGEST}k`])(
    "%j, which Anthropic refuses -> taken, not declared, told",
    (name) => {
      const raw = object(
        { [name]: STRING, b: STRING },
        { required: [name, "b"], additionalProperties: false },
      );
      expect(repairInputSchema(raw)).toEqual({
        schema: object({ b: STRING }, { required: ["b"] }),
        repairs: ["name"],
        undeclared: `Also takes ${JSON.stringify(name)} (string, required).`,
      });
    },
  );

  test("accepted names, and any name deeper in the schema -> declared", () => {
    const schema = object({ [LONGEST]: STRING, "x.y-z_1": object({ "": STRING, "a b": STRING }) });
    expect(repairInputSchema(schema)).toEqual({ schema, repairs: [] });
  });

  test("keywords that judge other properties, and references to an undeclared one -> left out", () => {
    const raw = object(
      { "a b": { type: ["string", "null"] }, c: { $ref: "#/properties/a b" } },
      { additionalProperties: STRING, unevaluatedProperties: false },
    );
    expect(repairInputSchema(raw)).toEqual({
      schema: object({ c: ANYTHING }),
      repairs: ["name", "reference"],
      undeclared: 'Also takes "a b".',
    });
  });

  test("many names, and one too long to write -> the first 20, and a count of the rest", () => {
    const names = ["x ".repeat(1_000), ...Array.from({ length: 30 }, (_, i) => `p ${i}`)];
    const { undeclared } = repairInputSchema(object(Object.fromEntries(names.map((name) => [name, true]))));
    expect(undeclared).toMatch(/^Also takes "p 0", "p 1", .*"p 19", 11 more\.$/);
  });
});

/** Values in the place of a schema that are not schemas. */
const NONE = [null, "string", 5, []];

describe("repairInputSchema: a value that is not a schema in the place of one", () => {
  const rows = NONE.flatMap((none): [string, Schema, Schema, Repair][] => [
    ["properties", { properties: { b: none } }, { properties: { b: ANYTHING } }, "schema"],
    [
      "patternProperties",
      { patternProperties: { "^b": none } },
      { patternProperties: { "^b": {} } },
      "schema",
    ],
    ["dependentSchemas", { dependentSchemas: { b: none } }, { dependentSchemas: { b: {} } }, "schema"],
    ["allOf", { allOf: [none, STRING] }, { allOf: [STRING] }, "keyword"],
    ["anyOf", { anyOf: [none, STRING] }, ANYTHING, "keyword"],
    ["oneOf", { oneOf: [none, STRING] }, ANYTHING, "keyword"],
    ...["not", "if", "then", "else", "contains", "propertyNames", "contentSchema", "additionalItems"].map(
      (key): [string, Schema, Schema, Repair] => [key, { [key]: none }, ANYTHING, "keyword"],
    ),
    ...["additionalProperties", "unevaluatedProperties", "unevaluatedItems"].map(
      (key): [string, Schema, Schema, Repair] => [key, { [key]: none }, ANYTHING, "keyword"],
    ),
  ]);
  it.each(rows)("%s: %o", (_name, raw, schema, repair) => {
    expect(repairInputSchema(inside(raw))).toEqual({ schema: inside(schema), repairs: [repair] });
    expect(repairInputSchema(inside(schema))).toEqual({ schema: inside(schema), repairs: [] });
  });

  it.each<[string, Schema, Schema, Repair[]]>([
    ["properties of the root", object({ a: null }), object({ a: ANYTHING }), ["schema"]],
    ["properties of no map", inside({ properties: [STRING] }), inside(ANYTHING), ["keyword"]],
    ["dependencies", inside({ dependencies: { b: 5 } }), inside({ dependencies: { b: {} } }), ["schema"]],
    [
      "dependencies on names",
      inside({ dependencies: { b: ["c", 5], d: STRING } }),
      inside({ dependencies: { b: ["c"], d: STRING } }),
      ["value"],
    ],
    ["items that are a number", inside({ items: 5 }), inside(ANYTHING), ["keyword"]],
    ["prefixItems that are a schema", inside({ prefixItems: STRING }), inside(ANYTHING), ["keyword"]],
    ["an empty prefixItems", inside({ prefixItems: [] }), inside({ items: ANYTHING }), ["tuple"]],
    [
      "items by position",
      inside({ items: [null, STRING], additionalItems: false }),
      inside({ items: ANYTHING, maxItems: 2, description: "By position: any, string." }),
      ["tuple"],
    ],
    ["allOf of nothing sound", inside({ allOf: [null] }), inside(ANYTHING), ["keyword"]],
    [
      "a reference to it",
      inside({ $ref: "#/$defs/x" }, { x: null }),
      inside(ANYTHING),
      ["reference", "schema"],
    ],
    [
      "a reference to what is left out with it",
      object({ a: { anyOf: [STRING, 5] }, b: { $ref: "#/properties/a/anyOf/0" } }),
      object({ a: ANYTHING, b: ANYTHING }),
      ["keyword", "reference"],
    ],
    [
      "properties that refer to a map",
      inside(object({ $ref: "#/$defs/x" }, { additionalProperties: false }), { x: { b: STRING } }),
      inside(object({})),
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
    ["additionalProperties", [true, false, STRING], ["false", 0, null]],
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
        schema: inside(ANYTHING),
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
    const declared = ["title", "required", "schemas"].map((name) => ({ $ref: `#/$defs/${name}` }));
    const $defs = { title: STRING, required: object({ a: STRING }), schemas: STRING };
    expect(repairInputSchema(object({ a: { anyOf: refs } }, { components }))).toEqual({
      schema: inside({ anyOf: declared }, $defs),
      repairs: [],
    });
  });
});

/** `condition(a, b, c)`: the keywords `if`, `then` and `else`. */
const condition = (...schemas: unknown[]): Schema =>
  Object.fromEntries(schemas.map((schema, i) => [["if", "then", "else"][i] ?? "", schema]));

const SLOW = "^(a+)+$";
const MUST = `Must match /${SLOW}/.`;
const NOWHERE = { $ref: "#/$defs/nowhere" };

describe("repairInputSchema: a slow pattern", () => {
  it.each<[string, Schema, Schema]>([
    ["of a parameter", { ...STRING, pattern: SLOW }, { ...STRING, description: MUST }],
    [
      "of one with a description",
      { description: "The code. ", pattern: SLOW },
      { description: `The code. ${MUST}` },
    ],
    [
      "of items",
      { type: "array", items: { ...STRING, pattern: SLOW } },
      { type: "array", items: { ...STRING, description: MUST } },
    ],
    [
      "of names",
      { propertyNames: { pattern: SLOW } },
      { propertyNames: { description: MUST }, description: `Names must match /${SLOW}/.` },
    ],
    [
      "that names properties, beside one that stays",
      { patternProperties: { [SLOW]: STRING, "^b+$": STRING }, additionalProperties: false },
      { patternProperties: { "^b+$": STRING }, description: `Takes names that match /${SLOW}/.` },
    ],
  ])("%s -> described in words, not declared", (_name, raw, schema) => {
    const { schema: repaired, repairs } = repairInputSchema(inside(raw));
    expect(repaired).toEqual(inside(schema));
    expect(repairs[0]).toBe("slow");
    // A second repair adds no second sentence, also for a schema that is read back from a cache.
    expect(repairInputSchema(repaired)).toEqual({ schema: inside(schema), repairs: [] });
  });

  test("an unprintable pattern -> escaped; a long pattern -> cut", () => {
    const told = (pattern: string): unknown => repairInputSchema(inside({ pattern })).schema.properties;
    expect(told("^(a\u001b\u202e\u2028a+)+$")).toEqual({
      a: { description: "Must match /^(a\\u{1b}\\u{202e}\\u{2028}a+)+$/." },
    });
    expect(told(`^(a+)+${"b".repeat(500)}$`)).toEqual({
      a: { description: `Must match /^(a+)+${"b".repeat(114)}…/.` },
    });
  });

  test("many patterns -> all are left out, the first 50 are described", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`p${i}`, { ...STRING, pattern: `(${i}+)+$` }]),
    );
    const declared = Object.values(repairInputSchema(object(properties)).schema.properties as Schema);
    expect(declared.filter((schema) => Object.hasOwn(schema as Schema, "description"))).toHaveLength(50);
    expect(JSON.stringify(declared)).not.toContain('"pattern"');
  });

  test("a pattern that is not a regular expression -> left out", () => {
    expect(repairInputSchema(inside({ pattern: "(" }))).toEqual({
      schema: inside(ANYTHING),
      repairs: ["pattern"],
    });
  });
});

describe("repairInputSchema: around a part that was left out", () => {
  it.each<[string, Schema, Schema, Repair[]]>([
    ["not", { not: { pattern: SLOW } }, ANYTHING, ["slow", "choice"]],
    ["not, deeper", { not: object({ b: NOWHERE }), ...STRING }, STRING, ["reference", "choice"]],
    [
      "if",
      { ...condition({ pattern: SLOW }, STRING, { minLength: 1 }), title: "A" },
      { title: "A" },
      ["slow", "choice"],
    ],
    [
      "then: the condition stays",
      condition({ const: 1 }, { pattern: SLOW }),
      condition({ const: 1 }, { description: MUST }),
      ["slow"],
    ],
    [
      "oneOf: several parts may take a value now",
      { oneOf: [{ pattern: SLOW }, { const: "b" }] },
      { anyOf: [{ description: MUST }, { const: "b" }] },
      ["slow", "choice"],
    ],
    [
      "oneOf beside anyOf",
      { oneOf: [NOWHERE, STRING], anyOf: [STRING, {}] },
      { anyOf: [STRING, ANYTHING], allOf: [{ anyOf: [ANYTHING, STRING] }] },
      ["reference", "choice"],
    ],
    ["anyOf", { anyOf: [NOWHERE, STRING] }, { anyOf: [ANYTHING, STRING] }, ["reference"]],
    [
      "contains, at most so often",
      { contains: NOWHERE, minContains: 1, maxContains: 2 },
      { contains: {}, minContains: 1 },
      ["reference", "choice"],
    ],
    [
      "what no part of the schema looks at",
      { allOf: [NOWHERE], properties: { b: STRING }, unevaluatedProperties: false },
      { allOf: [{}], properties: { b: STRING } },
      ["reference", "choice"],
    ],
    [
      "properties that are none, and no others",
      { type: "object", properties: ["b"], additionalProperties: false },
      { type: "object" },
      ["keyword", "choice"],
    ],
    [
      "below a property: what names it stays",
      object({ b: NOWHERE }, { additionalProperties: false }),
      object({ b: ANYTHING }, { additionalProperties: false }),
      ["reference"],
    ],
  ])("%s", (_name, raw, schema, repairs) => {
    expect(repairInputSchema(inside(raw))).toEqual({ schema: inside(schema), repairs });
    expect(repairInputSchema(inside(schema))).toEqual({ schema: inside(schema), repairs: [] });
  });

  test("a not that is left out within another one -> neither is left", () => {
    const x = { ...STRING, pattern: SLOW };
    const raw = object({ a: { not: { ...STRING, not: { $ref: "#/$defs/x" } } } }, { $defs: { x } });
    expect(repairInputSchema(raw)).toEqual({ schema: object({ a: ANYTHING }), repairs: ["slow", "choice"] });
  });

  test("a reference to a schema with a part left out -> loosened in the same way", () => {
    const x = { ...STRING, pattern: SLOW };
    const ref = { $ref: "#/$defs/x" };
    const raw = object(
      { a: { not: ref }, b: { oneOf: [ref, { type: "number" }] }, c: ref },
      { $defs: { x } },
    );
    expect(repairInputSchema(raw)).toEqual({
      schema: object(
        { a: ANYTHING, b: { anyOf: [ref, { type: "number" }] }, c: ref },
        { $defs: { x: { ...STRING, description: MUST } } },
      ),
      repairs: ["slow", "choice"],
    });
  });
});
