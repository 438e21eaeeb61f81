/** The ranked search: its index, pins, scores, and results that were made by hand. */

import { describe, expect, test } from "vitest";
import { buildIndex } from "../../../../src/shared/search/build.ts";
import {
  findTerm,
  IMPACT_BITS,
  openIndex,
  prefixRange,
  stringAt,
  type ToolIndex,
  WEIGHT_BITS,
  writeIndex,
} from "../../../../src/shared/search/index-format.ts";
import { findPins, toolsNamed } from "../../../../src/shared/search/pins.ts";
import { queryTerms } from "../../../../src/shared/search/query.ts";
import { type Scored, searchIndex } from "../../../../src/shared/search/ranked.ts";
import { type SearchTool, WEIGHTS, type Weights } from "../../../../src/shared/search/weights.ts";
import { amount } from "../../../support/long.ts";
import { hasSearchData, labelledQueries, realTools, withServerTexts } from "../../../support/search-data.ts";
import { catalog, searcher } from "./catalog.ts";

const bytes = buildIndex(catalog);

describe("openIndex", () => {
  test("makes views of the given buffer and copies nothing", () => {
    const index = openIndex(bytes);
    for (const value of Object.values(index))
      if (ArrayBuffer.isView(value)) expect(value.buffer).toBe(bytes.buffer);
  });

  test("an opened index that is written again -> the same bytes", () =>
    expect(writeIndex(openIndex(bytes))).toEqual(bytes));

  test.each([[0], [4], [8], [1], [2], [3]])("reads an index that starts %i bytes into a buffer", (offset) => {
    const larger = new Uint8Array(bytes.length + 16);
    larger.set(bytes, offset);
    const index = openIndex(larger.subarray(offset, offset + bytes.length));
    expect(searchIndex(index, "read a file", 1).hits[0]?.tool).toBe(3);
  });

  test.each([
    ["nothing", new Uint8Array(0), /too few/u],
    ["a cut file", bytes.slice(0, bytes.length - 8), /cut off/u],
    ["a cut header", bytes.slice(0, 20), /too few/u],
    ["another format", new Uint8Array(400), /byte order/u],
    ["another byte order", bytes.slice().fill(1, 8, 9), /byte order/u],
    ["another version", bytes.slice().fill(99, 4, 5), /version 99/u],
    ["a section outside", bytes.slice().fill(255, 36, 39), /outside|cut off/u],
  ])("throws a RangeError for %s", (_, broken, message) => {
    expect(() => openIndex(broken)).toThrow(RangeError);
    expect(() => openIndex(broken)).toThrow(message);
  });

  test("an empty catalog opens and finds nothing", () => {
    expect(searchIndex(openIndex(buildIndex([])), "read_file", 5)).toEqual({
      hits: [],
      unmatched: ["read", "file"],
    });
  });
});

test("every term is found by its spelling, by prefix, and in order", () => {
  const index = openIndex(bytes);
  const terms = Array.from({ length: index.termCount }, (_, term) =>
    stringAt(index.termStart, index.termChars, term),
  );
  expect(terms).toEqual([...terms].sort((a, b) => (a < b ? -1 : 1)));
  terms.forEach((term, id) => {
    expect(findTerm(index, term)).toBe(id);
  });
  expect(findTerm(index, "zzqqy")).toBe(-1);
  const { first, end } = prefixRange(index, "re");
  expect(terms.slice(first, end)).toEqual(terms.filter((term) => term.startsWith("re")));
});

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

const LIMIT = 15;

/** Packed numbers of one row: the upper bits and the lower `bits`. */
const unpack = (items: Uint32Array, start: Uint32Array, row: number, bits: number): [number, number][] =>
  [...items.subarray(start[row], start[row + 1])].map((packed) => [packed >>> bits, packed % 2 ** bits]);

interface Variant {
  weight: number;
  /** Tool -> quantised impact. */
  impacts: Map<number, number>;
}

function byHand(index: ToolIndex, query: string): { tool: number; score: number }[] {
  const { terms, action } = queryTerms(index, query, WEIGHTS);
  const match = new Map<number, number>();
  const words = terms.map(({ variants, weight, idf }) => {
    for (const variant of variants) {
      match.set(variant.term, Math.max(match.get(variant.term) ?? 0, variant.weight));
    }
    const read = variants.map(
      (variant): Variant => ({
        weight: variant.weight,
        impacts: new Map(unpack(index.postings, index.postingStart, variant.term, IMPACT_BITS)),
      }),
    );
    return { variants: read, weight, idf };
  });
  const wanted = words.reduce((sum, { weight, idf }) => sum + weight * idf, 0);
  const scored: Scored[] = [];
  for (let tool = 0; tool < index.toolCount; tool++) {
    let [score, covered] = [0, 0];
    for (const { variants, weight, idf } of words) {
      const found = variants.filter(({ impacts }) => impacts.has(tool));
      if (found.length === 0) continue;
      score += Math.max(
        ...found.map((one) => (one.impacts.get(tool) ?? 0) * one.weight * weight * index.impactScale),
      );
      covered += (found[0]?.weight ?? 0) * weight * idf;
    }
    if (score === 0) continue;
    const own = index.toolAction[tool] ?? 0;
    const fit =
      action === 0 || own === 0 ? 1 : own & action ? 1 + WEIGHTS.actionFit : 1 - WEIGHTS.actionClash;
    const named = unpack(index.nameTerms, index.nameStart, tool, WEIGHT_BITS)
      .map(([term, share]) => ((match.get(term) ?? 0) * share) / (2 ** WEIGHT_BITS - 1))
      .reduce((sum, share) => sum + share, 0);
    const coverage = WEIGHTS.coverageBase + (1 - WEIGHTS.coverageBase) * (covered / wanted);
    scored.push({ tool, score: fit * score * coverage * (1 + WEIGHTS.nameCoverage * Math.min(1, named)) });
  }
  scored.sort((a, b) => b.score - a.score || a.tool - b.tool);
  const pins = findPins(index, query);
  const room = LIMIT + pins.length;
  const ranked = scored.slice(0, room);
  const rest = ranked.filter(({ tool }) => !pins.includes(tool));
  return [...pins.map((tool) => ({ tool, score: ranked[0]?.score ?? 1 })), ...rest].slice(
    0,
    Math.max(LIMIT, pins.length),
  );
}

/** Sums of many impacts differ in the sixth digit, since the search adds 32-bit numbers; so equal tools may change places. */
const isNear = (one: number, other: number): boolean => Math.abs(one - other) <= 1e-4 * Math.abs(one);

/** The queries for which the search does not find what the rules say. */
function differing(tools: readonly SearchTool[], queries: readonly string[]): string[] {
  const index = openIndex(buildIndex(tools));
  return queries.filter((query) => {
    const { hits } = searchIndex(index, query, LIMIT);
    const expected = byHand(index, query);
    const scores = new Map(expected.map(({ tool, score }) => [tool, score]));
    const same = hits.every(({ tool, score }, at) => {
      const there = expected[at];
      if (!there || !isNear(score, there.score)) return false;
      return tool === there.tool || isNear(score, scores.get(tool) ?? score);
    });
    return !same || hits.length !== expected.length;
  });
}

test("a small catalog: the search finds what the rules say", () => {
  const queries = [
    "create an issue",
    "search the web for scientific articles",
    "use read_file to write a report about files in a directory",
    "summarize report of the mysql database",
  ];
  expect(differing(catalog, queries)).toEqual([]);
});

test.runIf(hasSearchData)("the real catalog: requests and whole tasks find what the rules say", () => {
  const texts = labelledQueries().flatMap(({ query, keyword }) => [query, keyword]);
  const some = texts.filter((_, at) => at % amount(48, 16) === 0);
  const tasks = [0, 1, 2, 3]
    .slice(0, amount(2, 4))
    .map((at) => texts.slice(at * 100, at * 100 + 25).join(" "));
  expect(differing(withServerTexts(realTools()), [...some, ...tasks])).toEqual([]);
});

const searchFor = searcher();

describe("searchIndex: query -> best tool", () => {
  test.each([
    ["create an issue in the repository", "github/create_issue"],
    ["Creating pull requests", "github/create_pull_request"],
    ["open a PR", "github/create_pull_request"],
    ["make a new ticket", "tickets/create_issue"],
    ["show me the branches of my repo", "github/list_branches"],
    ["what will the weather be tomorrow", "weather/get_forecast"],
    ["what is in this folder", "files/listDirectory"],
    ["run MySQL statement", "db/mysql_query"],
    ["my sql", "db/mysql_query"],
    ["encoding", "files/read_file"],
    ["labels", "github/create_issue"],
    ["forcast", "weather/get_forecast"],
    ["forec", "weather/get_forecast"],
    ["微信读书", "news-cn/get-rank"],
    ["東京 天気", "news-jp/tenki"],
    ["서울 날씨", "news-kr/nalssi"],
  ])("%s -> %s", (query, expected) => expect(searchFor(query).ids[0]).toBe(expected));

  const DAILY = searcher([
    { server: "fs", name: "read_text_file", description: "Read the complete contents of a file as text." },
    {
      server: "fs",
      name: "edit_file",
      description:
        "Make line-based edits to a text file. Each edit replaces lines with new content. Returns a diff showing the changes.",
    },
    { server: "web", name: "browser_navigate", description: "Navigate to a URL" },
    { server: "web", name: "browser_click", description: "Perform click on a web page" },
    {
      server: "kg",
      name: "create_entities",
      description: "Create multiple new entities in the knowledge graph",
    },
    {
      server: "kg",
      name: "delete_entities",
      description: "Delete multiple entities from the knowledge graph",
    },
    { server: "demo", name: "die", description: "Exit the process during the call" },
    { server: "hub", name: "list_reviews", description: "List the pull requests that wait for a review." },
  ]);
  test.each([
    ["show me the content of a file", "fs/read_text_file"],
    ["open a website", "web/browser_navigate"],
    ["remember something", "kg/create_entities"],
    ["pull request", "hub/list_reviews"],
  ])("in the words of a newcomer: %s -> %s", (query, expected) => {
    const { ids } = DAILY(query);
    expect(ids[0]).toBe(expected);
    if (query === "pull request") expect(ids).not.toContain("demo/die");
  });

  test("scores fall and are finite", () => {
    const { scores } = searchFor("create a new issue");
    expect(scores.length).toBeGreaterThan(1);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(scores.every((score) => Number.isFinite(score) && score > 0)).toBe(true);
  });

  test("a query always gives the same answer, for any queries before it", () => {
    const first = searchFor("list files of a directory");
    searchFor("weather create issue branches");
    expect(searchFor("list files of a directory")).toEqual(first);
  });

  test.each([[0], [1], [3], [50]])("limit %i bounds the hits that are not pinned", (limit) => {
    expect(searchFor("create list read search file", limit).ids.length).toBeLessThanOrEqual(limit);
  });

  test("a server filter is called once for each server and also applies to pins", () => {
    const asked: string[] = [];
    const { ids } = searchFor("create_issue", 5, {
      servers: (server) => {
        asked.push(server);
        return server === "tickets";
      },
    });
    expect(ids).toEqual(["tickets/create_issue"]);
    expect(asked).toEqual([...new Set(catalog.map(({ server }) => server))]);
  });
});

describe("searchIndex: unmatched", () => {
  test.each([
    ["create a slack channel issue", ["slack", "channel"]],
    ["create an issue", []],
    ["zzqqy", ["zzqqy"]],
    ["create 17 issues in 'acme.zzqqy'", []],
    ["", []],
    ["the of and", []],
  ])("%j -> %j", (query, expected) => expect(searchFor(query).unmatched).toEqual(expected));

  test("unknown words find nothing", () => expect(searchFor("zzqqy xxkkj").ids).toEqual([]));
});

test("equal tools on two servers -> both come before further tools of one server", () => {
  const tools = ["a", "b"].flatMap((server) =>
    ["read_file", "read_file_lines", "read_file_bytes", "read_file_head"].map((name) => ({
      server,
      name,
      description: "Read a file",
    })),
  );
  expect(searcher(tools)("read a file", 3).ids.slice(0, 2).sort()).toEqual(["a/read_file", "b/read_file"]);
});

test.each([
  ["read_notes_daily", 1],
  ["read_notes_daily_weekly", 1 / 1.1],
  ["read_notes_daily_weekly_of_the_team", 1 / 1.2],
])("a long name -> each word beyond the third costs: %s keeps %f of its score", (name, share) => {
  const tools = [
    { server: "s", name, description: "Zebra." },
    { server: "s", name: "write", description: "Something else." },
  ];
  const score = (weights: Weights): number => {
    const { hits } = searchIndex(openIndex(buildIndex(tools, weights)), "zebra", 1, { weights });
    return hits[0]?.score ?? 0;
  };
  expect(score(WEIGHTS) / score({ ...WEIGHTS, longName: 0 })).toBeCloseTo(share, 2);
});

describe("tools described in Chinese", () => {
  const tool = (name: string, description: string, parameter?: string): SearchTool => ({
    server: "office",
    name,
    description,
    inputSchema: {
      type: "object",
      properties: parameter === undefined ? {} : { x: { type: "string", description: parameter } },
    },
  });
  const tools = [
    tool("file_write", "将内容写入指定文件", "要写入的内容"),
    tool("file_delete", "删除指定文件"),
    tool("flight_search", "查询航班信息", "出发城市的名称"),
    tool("hotel_book", "预订酒店房间"),
    tool("city_weather", "获取某个城市的天气预报"),
  ];
  const index = openIndex(buildIndex(tools));
  const search = (query: string) => searchIndex(index, query, 5);

  test.each([
    ["把这句话写到文件里", "file_write"],
    // No pair of characters is the same.
    ["写下来", "file_write"],
    ["帮我订一间房", "hotel_book"],
    ["机票从哪儿出发", "flight_search"],
    // What comes late in a long request counts as well.
    [
      "春风来了山上开满各种颜色的花，孩子们在河边放风筝，老人坐在树下喝茶闲聊，小狗跑远，然后删掉它",
      "file_delete",
    ],
  ])("%s -> %s", (query, name) => expect(tools[search(query).hits[0]?.tool ?? -1]?.name).toBe(name));

  test("words that no tool has are told in pairs, and never character by character", () => {
    const { unmatched } = search("发邮件");
    expect(unmatched).toEqual(["发邮", "邮件"]);
  });
});

describe("the person's own words for a tool", () => {
  const words = (keywords?: string): readonly SearchTool[] =>
    catalog.map((tool, at) => (at === 3 && keywords !== undefined ? { ...tool, keywords } : tool));

  test("found by such a word, as by a word of its name; without them the index has the same bytes", () => {
    const at = (keywords: string | undefined, query: string) => searcher([...words(keywords)])(query).ids[0];
    expect(at("kerfuffle", "kerfuffle")).toContain("read_file");
    expect(at(undefined, "kerfuffle")).toBeUndefined();
    expect(buildIndex(words(""))).toEqual(bytes);
    expect(buildIndex(words("kerfuffle"))).not.toEqual(bytes);
  });
});
