/** The part of a schema that reaches the model if a server hides characters in it. */
import { describe, expect, it, test } from "vitest";
import { LIMITS } from "../../../../../src/shared/protocol/limits.ts";
import { cleanSchema } from "../../../../../workers/cache/schema/schema.ts";

type Schema = Record<string, unknown>;

const HIDDEN = "\u{e0049}\u{e0047}\u200b\u200b";
const object = (properties: Schema, rest: Schema = {}): Schema => ({ type: "object", properties, ...rest });

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
