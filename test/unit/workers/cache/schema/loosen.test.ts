/** A schema around a part that was left out takes all values that the server takes. */
import { describe, expect, it, test } from "vitest";
import type { Repair } from "../../../../../workers/cache/schema/keywords.ts";
import { repairInputSchema } from "../../../../../workers/cache/schema/schema.ts";

type Schema = Record<string, unknown>;
const STRING = { type: "string" };
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });
const inside = (a: unknown, $defs?: Schema): Schema => object({ a }, $defs ? { $defs } : {});

/** `condition(a, b, c)`: the keywords `if`, `then` and `else`. */
const condition = (...schemas: unknown[]): Schema =>
  Object.fromEntries(schemas.map((schema, i) => [["if", "then", "else"][i] ?? "", schema]));

const SLOW = "^(a+)+$";
const MUST = `Must match the pattern /${SLOW}/.`;
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
      { propertyNames: { description: MUST }, description: `Names must match the pattern /${SLOW}/.` },
    ],
    [
      "that names properties, beside one that stays",
      { patternProperties: { [SLOW]: STRING, "^b+$": STRING }, additionalProperties: false },
      { patternProperties: { "^b+$": STRING }, description: `Takes names that match the pattern /${SLOW}/.` },
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
      a: { description: "Must match the pattern /^(a\\u{1b}\\u{202e}\\u{2028}a+)+$/." },
    });
    expect(told(`^(a+)+${"b".repeat(500)}$`)).toEqual({
      a: { description: `Must match the pattern /^(a+)+${"b".repeat(114)}…/.` },
    });
  });

  test("many patterns -> all are left out, the first 50 are described", () => {
    const properties = Object.fromEntries(
      Array.from({ length: 500 }, (_, i) => [`p${i}`, { pattern: `(${i}+)+$` }]),
    );
    const declared = Object.values(repairInputSchema(object(properties)).schema.properties as Schema);
    expect(declared.filter((schema) => Object.hasOwn(schema as Schema, "description"))).toHaveLength(50);
    expect(JSON.stringify(declared)).not.toContain('"pattern"');
  });

  test("a pattern that is not a regular expression -> left out", () => {
    expect(repairInputSchema(inside({ pattern: "(" }))).toEqual({ schema: inside({}), repairs: ["pattern"] });
  });
});

describe("repairInputSchema: around a part that was left out", () => {
  it.each<[string, Schema, Schema, Repair[]]>([
    ["not", { not: { pattern: SLOW } }, {}, ["slow", "choice"]],
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
      { anyOf: [STRING, {}], allOf: [{ anyOf: [{}, STRING] }] },
      ["reference", "choice"],
    ],
    ["anyOf", { anyOf: [NOWHERE, STRING] }, { anyOf: [{}, STRING] }, ["reference"]],
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
      object({ b: {} }, { additionalProperties: false }),
      ["reference"],
    ],
  ])("%s", (_name, raw, schema, repairs) => {
    expect(repairInputSchema(inside(raw))).toEqual({ schema: inside(schema), repairs });
    expect(repairInputSchema(inside(schema))).toEqual({ schema: inside(schema), repairs: [] });
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
        { a: {}, b: { anyOf: [ref, { type: "number" }] }, c: ref },
        { $defs: { x: { ...STRING, description: MUST } } },
      ),
      repairs: ["slow", "choice"],
    });
  });
});
