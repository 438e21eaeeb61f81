/** What a server lists is reduced to what is safe to keep. */
import { describe, expect, it, test } from "vitest";
import {
  isBounded,
  normalizePrompts,
  normalizeResources,
  normalizeTemplates,
  normalizeTool,
  normalizeTools,
  unboundedTools,
} from "../../../../workers/shared/listed.ts";

it.each<[string, unknown, unknown]>([
  ["no list", { prompts: [] }, []],
  ["not objects", [null, 1, "a", ["b"]], []],
  ["no name, an empty one, one of a megabyte", [{}, { name: "" }, { name: "x".repeat(1_000_000) }], []],
  [
    "of one name the first",
    [
      { name: "a", title: "1" },
      { name: "a", title: "2" },
    ],
    [{ name: "a", title: "1" }],
  ],
  ["fields of wrong types, unknown ones", [{ name: "a", title: 5, icons: [] }], [{ name: "a" }]],
  [
    "arguments, malformed ones among them",
    [{ name: "a", arguments: [{ name: "x", description: "d", required: false, y: 1 }, {}, 7] }],
    [{ name: "a", arguments: [{ name: "x", description: "d", required: false }] }],
  ],
  ["arguments that are no list", [{ name: "a", arguments: { x: 1 } }], [{ name: "a" }]],
  [
    "more arguments than anybody fills in",
    [{ name: "a", arguments: Array.from({ length: 60 }, (_, i) => ({ name: `x${i}` })) }],
    [{ name: "a", arguments: Array.from({ length: 50 }, (_, i) => ({ name: `x${i}` })) }],
  ],
])("%s", (_name, raw, expected) => {
  expect(normalizePrompts(raw)).toEqual(expected);
});

const nested = (depth: number): unknown => {
  let value: unknown = {};
  for (let i = 0; i < depth; i++) value = { a: value };
  return value;
};

describe("normalizeTool", () => {
  test("a whole tool -> every known field and no other", () => {
    const tool = {
      name: "t",
      title: "T",
      description: "d",
      inputSchema: { type: "object" },
      outputSchema: { type: "object" },
      annotations: { readOnlyHint: true },
    };
    expect(normalizeTool({ ...tool, icons: [], _meta: { a: 1 }, execution: {} })).toEqual(tool);
  });

  test("a tool with signs -> those on which this client acts", () => {
    const _meta = { ui: { visibility: ["app"], resourceUri: "ui://a" }, "anthropic/alwaysLoad": true, a: 1 };
    const kept = { name: "t", _meta: { ui: { visibility: ["app"] }, "anthropic/alwaysLoad": true } };
    expect(normalizeTool({ name: "t", _meta })).toEqual(kept);
    expect(normalizeTool(kept)).toEqual(kept);
    expect(normalizeTool({ name: "t", uiVisibility: ["app"] })).toEqual({
      name: "t",
      _meta: { ui: { visibility: ["app"] } },
    });
  });

  it.each([
    null,
    undefined,
    5,
    "t",
    [],
    ["t"],
    {},
    { name: "" },
    { name: 5 },
    { name: null },
    { name: ["t"] },
    { name: "a\u0000b" },
    { name: "x".repeat(1_001) },
  ])("%j -> no tool", (raw) => {
    expect(normalizeTool(raw)).toBeUndefined();
  });

  it.each([
    [{ title: 5 }],
    [{ title: "" }],
    [{ description: {} }],
    [{ description: "" }],
    [{ inputSchema: "x" }],
    [{ inputSchema: [] }],
    [{ inputSchema: null }],
    [{ inputSchema: true }],
    [{ outputSchema: 5 }],
    [{ annotations: [] }],
    [{ annotations: "readOnly" }],
  ])("a field of a wrong type, %j -> left out, the tool stays", (broken) => {
    expect(normalizeTool({ name: "t", ...broken })).toEqual({ name: "t" });
  });

  test("a schema too deep or too big -> left out, the tool stays", () => {
    const big = Object.fromEntries(Array.from({ length: 20_001 }, (_, i) => [`k${i}`, 1]));
    for (const inputSchema of [nested(100), nested(100_000), big]) {
      expect(normalizeTool({ name: "t", description: "d", inputSchema })).toEqual({
        name: "t",
        description: "d",
      });
    }
  });

  it.each([
    ["description", 20_000],
    ["title", 1_000],
  ])("a %s of over %i characters -> cut, with an ellipsis", (field, chars) => {
    const text = "x".repeat(chars);
    expect(normalizeTool({ name: "t", [field]: text })).toEqual({ name: "t", [field]: text });
    const cut = `${text.slice(1)}…`;
    expect(normalizeTool({ name: "t", [field]: `${text}x` })).toEqual({ name: "t", [field]: cut });
    // A cut is never within a character.
    const tool = normalizeTool({ name: "t", [field]: "\u{1f600}".repeat(chars) });
    const kept = field === "title" ? tool?.title : tool?.description;
    expect(kept).toBe(`${"\u{1f600}".repeat(chars / 2 - 1)}…`);
    // A text that was cut before is not cut again.
    expect(normalizeTool({ name: "t", [field]: cut })).toEqual({ name: "t", [field]: cut });
  });

  test("a name of 1,000 characters of any script -> kept", () => {
    const name = "漢".repeat(1_000);
    expect(normalizeTool({ name })).toEqual({ name });
  });

  test("a schema that names __proto__ -> nothing inherits from it", () => {
    const tool = normalizeTool(JSON.parse('{"name":"t","inputSchema":{"__proto__":{"polluted":true}}}'));
    expect(tool?.name).toBe("t");
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("normalizeTools", () => {
  it.each([undefined, null, {}, "x", 5])("%j -> no tools", (raw) => {
    expect(normalizeTools(raw)).toEqual([]);
  });

  test("malformed tools among good ones -> the good tools, in order", () => {
    expect(normalizeTools([null, { name: "b" }, 5, {}, { name: "a" }])).toEqual([
      { name: "b" },
      { name: "a" },
    ]);
  });

  test("two tools with one name -> the first", () => {
    expect(normalizeTools([{ name: "a", title: "1" }, { name: "b" }, { name: "a", title: "2" }])).toEqual([
      { name: "a", title: "1" },
      { name: "b" },
    ]);
  });

  it.each(["constructor", "__proto__", "toString"])("a tool named %s -> a tool", (name) => {
    expect(normalizeTools([{ name }])).toEqual([{ name }]);
  });
});

test("unboundedTools: schemas too deep or too big -> their tools' names", () => {
  const list = [
    null,
    { name: "fine", inputSchema: nested(3) },
    { name: "in", inputSchema: nested(100) },
    { name: "out", outputSchema: nested(100) },
  ];
  expect(unboundedTools(list)).toEqual(["in", "out"]);
  expect(unboundedTools(undefined)).toEqual([]);
});

describe("isBounded", () => {
  it.each([
    ["null", null, true],
    ["a text", "x", true],
    ["depth 64", nested(64), true],
    ["depth 65", nested(65), false],
    ["depth 100,000", nested(100_000), false],
    ["a text and a key of 512 Ki characters", { a: "x".repeat(512 * 1024 - 1) }, true],
    ["one more", { a: "x".repeat(512 * 1024) }, false],
    ["a key of 512 Ki characters", { ["x".repeat(512 * 1024)]: {} }, true],
    ["one more", { ["x".repeat(512 * 1024 + 1)]: {} }, false],
    [
      "many long keys",
      Object.fromEntries(Array.from({ length: 600 }, (_, i) => ["x".repeat(1_000) + i, {}])),
      false,
    ],
    ["15,000 numbers", Array.from({ length: 15_000 }, () => 1e-300), true],
    ["numbers beside as much text", [...Array.from({ length: 15_000 }, () => 1), "x".repeat(420_000)], false],
    ["19,999 entries", Array.from({ length: 19_999 }, () => 0), true],
    ["20,000 entries", Array.from({ length: 20_000 }, () => 0), false],
  ])("%s -> $2", (_name, value, bounded) => {
    expect(isBounded(value)).toBe(bounded);
  });
});

test("pages of MCP Apps are neither resources nor templates", () => {
  const resources = ["ui://page", "UI://page", " ui://page", "x://a"].map((uri) => ({ uri, name: uri }));
  expect(normalizeResources(resources)).toEqual([{ uri: "x://a", name: "x://a" }]);
  const templates = ["ui://{page}", "{scheme}://a"].map((uriTemplate) => ({ uriTemplate, name: "t" }));
  expect(normalizeTemplates(templates)).toEqual([{ uriTemplate: "{scheme}://a", name: "t" }]);
});
