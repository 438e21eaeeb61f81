import { describe, expect, test } from "vitest";
import { buildIndex } from "../../../../../src/shared/search/build.ts";
import { openIndex } from "../../../../../src/shared/search/index-format.ts";
import { findPins, toolsNamed } from "../../../../../src/shared/search/pins.ts";
import { catalog, searcher } from "../catalog.ts";

const search = searcher();
const pins = (query: string, limit = 5): string[] => search(query, limit).pinned;

describe("findPins: query -> pinned tools", () => {
  test.each([
    ["read_file", ["files/read_file"]],
    ["please use read-file on notes", ["files/read_file"]],
    ["call readFile()", ["files/read_file"]],
    ["`write_file`", ["files/write-file"]],
    ["list_directory", ["files/listDirectory"]],
    ["github__create_issue", ["github/create_issue"]],
    ["mcp__tickets__create_issue", ["tickets/create_issue"]],
    ["MCP__GitHub__Create-Issue", ["github/create_issue"]],
    ["github/create_issue", ["github/create_issue"]],
    ["github.create_issue", ["github/create_issue"]],
    ["create_issue", ["github/create_issue", "tickets/create_issue"]],
    ["unknown__create_issue", ["github/create_issue", "tickets/create_issue"]],
    ["select:files__read_file,weather__get_forecast", ["files/read_file", "weather/get_forecast"]],
    ["Summarize Report", ["reports/Summarize Report"]],
    ["search", ["web/search", "papers/search"]],
    ["I want to use search", ["web/search", "papers/search"]],
    ["use the search tool", ["web/search", "papers/search"]],
    ["search the web for cats", []],
    ["then use `search` for cats", ["web/search", "papers/search"]],
    [
      "use read_file, sequentialthinking and get_forecast to help me",
      ["files/read_file", "math/sequentialthinking", "weather/get_forecast"],
    ],
    ["use read_file to search my notes", ["files/read_file"]],
    ["ask the search tool about cats", ["web/search", "papers/search"]],
    ["read the file", []],
    ["create an issue", []],
    ["", []],
    ["mcp__", []],
    ["__", []],
  ])("%j -> %j", (query, expected) => expect(pins(query)).toEqual(expected));

  test.each([
    ["underscores", (id: string) => id.replace("/", "__")],
    ["mcp", (id: string) => `mcp__${id.replace("/", "__")}`],
    ["hyphens", (id: string) => id.replace("/", "__").replaceAll("_", "-")],
  ])("every tool is pinned by its server and name, written with %s", (_, write) => {
    for (const { server, name } of catalog)
      expect(pins(write(`${server}/${name}`))).toContain(`${server}/${name}`);
  });

  test("four names in a sentence are all pinned, in order, ahead of everything else", () => {
    const { ids } = search(
      "First read_file, then github__create_issue; mcp__weather__get_forecast and `mysql_query` last",
      4,
    );
    expect(ids).toEqual(["files/read_file", "github/create_issue", "weather/get_forecast", "db/mysql_query"]);
  });

  test("tools that share a name take turns with those of other names, and pins may exceed the limit", () => {
    expect(pins("create_issue read_file", 1)).toEqual([
      "github/create_issue",
      "files/read_file",
      "tickets/create_issue",
    ]);
  });

  test("a full name of another shape is pinned", () => {
    const tools = [
      { server: "a very long server", name: "do_it", fullName: "mcp__avls_1f3c__do_it" },
      { server: "b", name: "do_it" },
    ];
    expect(searcher(tools)("mcp__avls_1f3c__do_it").pinned).toEqual(["a very long server/do_it"]);
  });

  test("many tools with one name do not flood the result", () => {
    const tools = Array.from({ length: 500 }, (_, at) => ({ server: `s${at}`, name: "do_it" }));
    expect(searcher(tools)("do_it").pinned.length).toBeLessThanOrEqual(32);
  });
});

describe("thousands of tools under one name", () => {
  const PUNCTUATION = "-_./:";
  const tools = Array.from({ length: 3_000 }, (_, at) => ({
    server: "s",
    name: [..."readfile"].join(PUNCTUATION[at % 5]) + PUNCTUATION[at % 5]?.repeat(at),
    fullName: `s__t${at}`,
  }));
  const index = openIndex(buildIndex(tools));

  test("toolsNamed -> the first 32 tools; a filter chooses among all", () => {
    expect(toolsNamed(index, "read_file")).toEqual(Array.from({ length: 32 }, (_, at) => at));
    expect(toolsNamed(index, "read_file", (tool) => tool >= 2_990)).toHaveLength(10);
  });

  test("findPins: a name hundreds of times, in hundreds of spellings -> at most 32 pins", () => {
    expect(findPins(index, "read_file ".repeat(256))).toHaveLength(32);
    const ways = Array.from({ length: 256 }, (_, at) => `read_${"-".repeat(at % 9)}file`).join(" ");
    expect(findPins(index, ways)).toHaveLength(32);
  });
});

test("thousands of tools with one name hide no other name, and a name of several words is found inside a task", () => {
  const same = Array.from({ length: 4_000 }, (_, at) => ({ server: `s${at}`, name: "search" }));
  const others = Array.from({ length: 500 }, (_, at) => ({ server: "o", name: `other_${at}` }));
  const index = openIndex(buildIndex([...same, ...others, { server: "r", name: "Monthly Sales Report" }]));
  for (const [at, { name }] of others.entries()) expect(toolsNamed(index, name)).toEqual([4_000 + at]);
  expect(toolsNamed(index, "s17__search")).toEqual([17]);
  expect(toolsNamed(index, "nobody")).toEqual([]);
  const words = Array.from({ length: 100 }, (_, at) => `word${at}`).join(" ");
  expect(findPins(index, `${words} monthly sales report ${words}`)).toEqual([4_500]);
});
