/** Owns: what becomes of arguments as a model wrote them, before Pi fits them to the tool's schema. */
import { expect, it, test } from "vitest";
import { preparedArguments } from "../../../src/tools/arguments.ts";
import { createMcpTool, loadArguments } from "../../../src/tools/definition.ts";
import { makeTool } from "../make-catalog.ts";

const LIST = { type: "array", items: { type: "string" } };
const TOOL = makeTool({
  tool: "act",
  schema: {
    type: "object",
    properties: {
      list: LIST,
      maybe: { anyOf: [LIST, { type: "null" }] },
      either: { oneOf: [LIST, { type: "string" }] },
      types: { type: ["array", "string"] },
      object: { type: "object", properties: { n: { type: "integer" } } },
      model: { $ref: "#/$defs/model" },
      models: { anyOf: [{ $ref: "#/$defs/model" }, { type: "null" }] },
      lost: { $ref: "#/$defs/none" },
      own: { $ref: "#/$defs/own" },
      text: { type: "string" },
      any: {},
      all: true,
      id: { type: "integer" },
      size: { type: ["number", "null"] },
    },
    $defs: { model: { type: "object" }, own: { $ref: "#/$defs/own" } },
  },
});
const prepared = (args: unknown): unknown => preparedArguments(TOOL, args);

it.each<[string, Record<string, unknown>, Record<string, unknown>]>([
  ["a list", { list: '["a","b"]' }, { list: ["a", "b"] }],
  ["an empty list, with blanks", { list: " [ ]\n" }, { list: [] }],
  ["a list or null", { maybe: '["a"]' }, { maybe: ["a"] }],
  ["an object", { object: '{"n": 1}' }, { object: { n: 1 } }],
  ["an object of $defs", { model: '{"a":[1]}' }, { model: { a: [1] } }],
  ["an object of $defs or null", { models: "{}" }, { models: {} }],
  ["some of several", { list: "[]", text: "[]", id: 5 }, { list: [], text: "[]", id: 5 }],
])("%s as a JSON text -> the value", (_what, args, value) => {
  expect(prepared(args)).toEqual(value);
});

it.each<[string, unknown]>([
  [
    "a list where texts are taken, too",
    { either: '["a"]', types: "[1]", any: "[1]", all: "{}", more: "[1]" },
  ],
  ["a text that only looks like JSON", { list: "[bug]", object: "{a}" }],
  ["an object where a list is wanted, and the other way round", { list: "{}", object: "[]" }],
  ["a reference that leads nowhere, or to itself", { lost: "{}", own: "{}" }],
  ["a list as it should be", { list: ["[1]"], id: 7 }],
  ["numbers that hold", { id: "12", size: "9007199254740992" }],
  ["a long number as a text", { text: "9007199254740993", list: "x" }],
  ["names of every object", { constructor: "[1]", toString: "{}" }],
  ["no object", "[1]"],
  ["nothing", undefined],
])("%s -> as it was written", (_what, args) => {
  expect(prepared(args)).toEqual(args);
});

test("a key that is __proto__ -> a key like any other", () => {
  const args = JSON.parse('{"__proto__": "[1]", "list": "[]"}') as unknown;
  expect(JSON.stringify(prepared(args))).toBe('{"__proto__":"[1]","list":[]}');
});

it.each([
  [{ id: "9007199254740993" }, "in id the number 9007199254740993 would be sent as 9007199254740992."],
  [
    { size: " -9007199254740993 " },
    "in size the number -9007199254740993 would be sent as -9007199254740992.",
  ],
  [
    { object: '{"n": 9007199254740993}' },
    "in object the number 9007199254740993 would be sent as 9007199254740992: write it as a text if the tool takes one.",
  ],
])("%j, a number that would be another one -> refused by name", (args, words) => {
  expect(() => prepared(args)).toThrow(`srv__act was not called: ${words}`);
});

test("alternatives without end -> looked at one step deep", () => {
  const nested = { anyOf: [{ anyOf: [LIST] }, LIST] };
  const tool = makeTool({ tool: "t", schema: { type: "object", properties: { a: nested } } });
  expect(preparedArguments(tool, { a: "[]" })).toEqual({ a: "[]" });
});

test("the tool in Pi -> its arguments are prepared once the session has loaded the code", async () => {
  const { prepareArguments } = createMcpTool(TOOL, () => Promise.reject(new Error("not called")));
  await loadArguments();
  expect(prepareArguments?.({ list: '["a"]' })).toEqual({ list: ["a"] });
});
