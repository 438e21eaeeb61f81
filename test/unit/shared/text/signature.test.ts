/** Parameters and descriptions in one bounded line. */
import { describe, expect, it, test } from "vitest";
import { parameterList } from "../../../../src/shared/text/signature.ts";
import { firstSentence } from "../../../../src/shared/text/unprintable.ts";

const one = (schema: unknown): string => parameterList({ properties: { p: schema }, required: ["p"] });

describe("parameterList: type of one parameter", () => {
  it.each([
    [{ type: "string" }, "(p: string)"],
    [{ type: ["string", "null"] }, "(p: string | null)"],
    [{ type: "array", items: { type: "integer" } }, "(p: integer[])"],
    [{ type: "array", items: { enum: ["a", "b"] } }, '(p: ("a" | "b")[])'],
    [{ type: "array" }, "(p: any[])"],
    [{ enum: ["a", 1, null] }, '(p: "a" | 1 | null)'],
    [{ const: "x" }, '(p: "x")'],
    [{ const: null }, "(p: null)"],
    [{ anyOf: [{ type: "string" }, { type: "number" }] }, "(p: string | number)"],
    [{ oneOf: [{ type: "string" }, { type: "string" }] }, "(p: string)"],
    [{ type: "object", properties: {} }, "(p: object)"],
    [{ type: "integer", default: 3 }, "(p: integer = 3)"],
    [{ type: "string", default: "" }, '(p: string = "")'],
    [{ type: "boolean", default: false }, "(p: boolean = false)"],
    [{}, "(p: any)"],
    [true, "(p: any)"],
    [null, "(p: any)"],
    [[], "(p: any)"],
    [{ type: 7 }, "(p: any)"],
    [{ $ref: "#/x" }, "(p: any)"],
  ])("%j -> %s", (schema, list) => {
    expect(one(schema)).toBe(list);
  });
});

describe("parameterList", () => {
  it.each([
    ["no properties", {}, "()"],
    ["properties that are no object", { properties: [] }, "()"],
    ["required that is no array", { properties: { a: {} }, required: "a" }, "(a?: any)"],
    [
      "required and optional",
      { properties: { path: { type: "string" }, head: { type: "number", default: 10 } }, required: ["path"] },
      "(path: string, head?: number = 10)",
    ],
    ["a required name without a property", { properties: { a: {} }, required: ["a", "b"] }, "(a: any)"],
  ])("%s -> $2", (_name, schema, list) => {
    expect(parameterList(schema)).toBe(list);
  });

  test("twenty parameters -> all; twenty-one -> twenty and how many more", () => {
    const properties = (count: number): Record<string, unknown> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: "string" }]));
    expect(parameterList({ properties: properties(20) })).toMatch(/p19\?: string\)$/);
    const list = parameterList({ properties: properties(23) });
    expect(list).toMatch(/p19\?: string, … 3 more\)$/);
    expect(list).not.toContain("p20");
  });

  test("eight enum values -> all; nine -> eight and an ellipsis", () => {
    expect(one({ enum: [1, 2, 3, 4, 5, 6, 7, 8] })).toBe("(p: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8)");
    expect(one({ enum: [1, 2, 3, 4, 5, 6, 7, 8, 9] })).toBe("(p: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | …)");
  });

  it.each([
    ["a long name", { ["n".repeat(500)]: { type: "string" } }],
    ["a long enum value", { p: { enum: ["v".repeat(500)] } }],
    ["a long default", { p: { type: "string", default: "d".repeat(500) } }],
    ["many types", { p: { type: Array.from({ length: 100 }, () => "string") } }],
  ])("%s -> at most 80 characters, ending in an ellipsis", (_name, properties) => {
    const list = parameterList({ properties });
    expect(list).toHaveLength(82);
    expect(list).toMatch(/…\)$/);
  });

  test("endlessly nested arrays -> bounded", () => {
    const nested: Record<string, unknown> = { type: "array" };
    nested.items = nested;
    expect(one(nested)).toBe("(p: any[][][])");
  });
});

describe("firstSentence", () => {
  it.each([
    ["Reads a file. Then more.", "Reads a file."],
    ["Reads a file", "Reads a file"],
    ["  padded. ", "padded."],
    ["First line\nsecond", "First line"],
    ["First line\r\nsecond", "First line"],
    ["Version 1.5 is out! Really.", "Version 1.5 is out!"],
    ["Is it? Yes.", "Is it?"],
    ["読みます。 次", "読みます。"],
    ["", ""],
  ])("%j -> %j", (description, sentence) => {
    expect(firstSentence(description)).toBe(sentence);
  });

  it.each([
    [160, "a".repeat(160)],
    [161, `${"a".repeat(159)}…`],
  ])("%i characters -> at most 160", (chars, sentence) => {
    expect(firstSentence("a".repeat(chars))).toBe(sentence);
  });
});
