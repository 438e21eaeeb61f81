import { describe, expect, test } from "vitest";
import { buildIndex } from "../../../../src/shared/search/build.ts";
import type { SearchTool } from "../../../../src/shared/search/weights.ts";
import { searcher } from "./catalog.ts";

const good: SearchTool = { server: "files", name: "read_file", description: "Read a file." };
const deep = (levels: number): unknown =>
  levels === 0 ? {} : { type: "object", properties: { [`level${levels}`]: deep(levels - 1) } };
const wide = {
  type: "object",
  properties: Object.fromEntries(
    Array.from({ length: 20_000 }, (_, at) => [`p${at}`, { description: "x ".repeat(50) }]),
  ),
};

describe("buildIndex and searchIndex: a hostile tool changes no result for other tools", () => {
  test.each<[string, Partial<SearchTool>]>([
    ["empty texts", { server: "", name: "", description: "" }],
    ["a name of 200 characters", { name: "a_b".repeat(67).slice(0, 200) }],
    ["a name of 100,000 characters", { name: "x".repeat(100_000) }],
    ["a name of marks only", { name: "___---..." }],
    [
      "__proto__",
      {
        server: "__proto__",
        name: "__proto__",
        description: "__proto__ constructor toString hasOwnProperty",
      },
    ],
    ["a huge description", { description: "needle haystack ".repeat(200_000) }],
    ["control characters", { name: "\u0000\uFFFF\uD800", description: "\u0000\u202E\uDC00" }],
    ["a deep schema", { inputSchema: deep(5_000) }],
    ["a wide schema", { inputSchema: wide }],
    [
      "own __proto__ in a schema",
      {
        inputSchema: JSON.parse(
          '{"properties":{"__proto__":{"description":"trap"},"constructor":{"enum":["a",1,null]}}}',
        ),
      },
    ],
    ["schema: string", { inputSchema: "object" }],
    ["schema: array", { inputSchema: [1, [2]] }],
    [
      "schema: wrong types",
      { inputSchema: { properties: [], items: 3, anyOf: {}, enum: "x", description: 7 } },
    ],
    [
      "schema: null children",
      { inputSchema: { properties: { a: null, b: 1, c: [] }, items: null, oneOf: [null, 1] } },
    ],
    ["description of a wrong type", { description: 42 as unknown as string }],
  ])("%s", (_, bad) => {
    const search = searcher([good, { server: "evil", name: "evil", ...bad }]);
    expect(search("read a file").ids[0]).toBe("files/read_file");
    expect(search("files__read_file").pinned).toEqual(["files/read_file"]);
    expect(() => search("__proto__ constructor")).not.toThrow();
  });

  test("a tool's share of the index is bounded", () => {
    const noise = Array.from({ length: 50_000 }, (_, at) => `w${at}`).join(" ");
    expect(
      buildIndex([good, { server: "evil", name: "evil", description: noise, inputSchema: wide }]).byteLength,
    ).toBeLessThan(64_000);
  });

  test.each([
    ["long", "read file ".repeat(100_000)],
    ["one word", "x".repeat(1_000_000)],
    ["quotes", "'".repeat(50_000)],
    ["slashes", "/".repeat(50_000)],
    ["dots", "a.".repeat(50_000)],
    ["names", "read_file ".repeat(5_000)],
  ])("a query of %s is cut, not refused", (_, query) => {
    const search = searcher([good]);
    expect(() => search(query)).not.toThrow();
  });
});
