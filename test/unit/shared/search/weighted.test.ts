/** The weighted search: its terms and its scores. */
import { describe, expect, it, test } from "vitest";
import {
  buildWeighted,
  nameParts,
  openWeighted,
  searchWeighted,
  type WeightedTool,
  weightedTerms,
  words,
} from "../../../../src/shared/search/weighted.ts";

it.each([
  ["fs__read_file", ["fs", "read", "file"]],
  ["read-file.now/then:later", ["read", "file", "now", "then", "later"]],
  ["readFile", ["read", "file"]],
  ["parseHTTPResponse", ["parse", "http", "response"]],
  ["getURL", ["get", "url"]],
  ["v2Api", ["v2", "api"]],
  ["base64", ["base64"]],
  ["__", []],
  ["", []],
  ["Größe", ["größe"]],
  ["ﬁle", ["file"]],
  ["検索_tool", ["検索", "tool"]],
])("nameParts: %j -> %j", (name, parts) => {
  expect(nameParts(name)).toEqual(parts);
});

it.each([
  ["Reads a file, then writes it.", ["reads", "a", "file", "then", "writes", "it"]],
  ["camelCase stays", ["camelcase", "stays"]],
  ["snake_case is cut", ["snake", "case", "is", "cut"]],
  ["`code` — dash", ["code", "dash"]],
  ["", []],
  ["...", []],
  ["Dateï 漢字", ["dateï", "漢字"]],
])("words: %j -> %j", (text, expected) => {
  expect(words(text)).toEqual(expected);
});

it.each([
  ["read file", ["read", "file"]],
  ["read_file", ["read_file"]],
  ["Read, FILE;read", ["read", "file"]],
  ["  spaced\tout\n", ["spaced", "out"]],
  ['"quoted" (bracketed)', ["quoted", "bracketed"]],
  ["github__create_issue", ["github__create_issue"]],
  ["... , ;", []],
  ["", []],
  ["ＦＩＬＥ", ["file"]],
])("weightedTerms: %j -> %j", (query, terms) => {
  expect(weightedTerms(query)).toEqual(terms);
});

function ranked(
  tools: readonly WeightedTool[],
  terms: readonly string[],
  limit = 100,
): { names: string[]; scores: Record<string, number>; unmatched: string[] } {
  const index = openWeighted(
    buildWeighted(tools),
    tools.map((tool) => tool.name),
  );
  const { hits, unmatched } = searchWeighted(index, terms, limit);
  const names = hits.map((hit) => tools[hit.tool]?.name ?? "?");
  return { names, scores: Object.fromEntries(hits.map((hit, i) => [names[i], hit.score])), unmatched };
}

describe("search: score of one tool", () => {
  const TOOL = { name: "fs__read_file", description: "Reads a file from disk." };
  it.each([
    ["equals a part", ["read"], 10],
    ["is a substring of a part", ["rea"], 5],
    ["is a word of the description only", ["disk"], 4],
    ["equals a part and is a word of the description", ["file"], 10 + 4],
    ["is a substring of a part; the description has only a longer word", ["fil"], 5],
    ["spans parts of the name", ["read_file"], 3],
    ["is the whole name", ["fs__read_file"], 3],
    ["is a part of a description word only", ["dis"], undefined],
    ["matches nothing", ["network"], undefined],
    ["two terms that equal parts", ["fs", "read"], 10 + 10],
    ["a part and a word", ["read", "disk"], 10 + 4],
    ["a part, a word and a span", ["read", "disk", "read_f"], 10 + 4 + 3],
    ["one term that matches and one that does not", ["read", "network"], 10],
  ])("$0 -> $2", (_name, terms, score) => {
    expect(ranked([TOOL], terms).scores).toEqual(score === undefined ? {} : { [TOOL.name]: score });
  });

  test("a term that is a substring of one part and equals another -> 10, not 15", () => {
    expect(ranked([{ name: "s__file_files", description: "" }], ["file"]).scores).toEqual({
      s__file_files: 10,
    });
  });

  test("a term that is a substring of a part and a word of the description -> 9", () => {
    expect(ranked([{ name: "s__files", description: "one file" }], ["file"]).scores).toEqual({ s__files: 9 });
  });

  test("a term that spans parts and is a word of the description -> 4, since a span counts only if neither holds", () => {
    // `words` cuts at underscores, so only a term without an underscore can be both.
    expect(ranked([{ name: "s__abCd", description: "abcd" }], ["abcd"]).scores).toEqual({ s__abCd: 4 });
  });

  test("upper case in the name -> found by lower case terms", () => {
    expect(ranked([{ name: "S__ReadFile", description: "" }], ["read", "readfile"]).scores).toEqual({
      S__ReadFile: 10 + 3,
    });
  });
});

describe("search: order and limits", () => {
  const TOOLS = [
    { name: "b__list", description: "" },
    { name: "a__list", description: "" },
    { name: "c__list", description: "list of things" },
    { name: "d__other", description: "makes a list" },
  ];

  test("several tools -> best first, equal scores by name", () => {
    expect(ranked(TOOLS, ["list"]).names).toEqual(["c__list", "a__list", "b__list", "d__other"]);
  });

  it.each([
    [0, []],
    [1, ["c__list"]],
    [3, ["c__list", "a__list", "b__list"]],
    [9, ["c__list", "a__list", "b__list", "d__other"]],
  ])("limit %i -> %j", (limit, names) => {
    expect(ranked(TOOLS, ["list"], limit).names).toEqual(names);
  });

  test("terms without a match -> listed in their order; the others still count", () => {
    const { names, unmatched } = ranked(TOOLS, ["zzz", "other", "yyy"]);
    expect(names).toEqual(["d__other"]);
    expect(unmatched).toEqual(["zzz", "yyy"]);
  });

  test("a match beyond the limit -> its term is not unmatched", () => {
    expect(ranked(TOOLS, ["list", "other"], 1).unmatched).toEqual([]);
  });

  test("no terms -> no hits", () => {
    expect(ranked(TOOLS, [])).toEqual({ names: [], scores: {}, unmatched: [] });
  });

  test("no tools -> every term unmatched", () => {
    expect(ranked([], ["a", "b"])).toEqual({ names: [], scores: {}, unmatched: ["a", "b"] });
  });

  test("terms with the names of properties that every object has -> no hits, no error", () => {
    expect(ranked(TOOLS, ["constructor", "__proto__"]).unmatched).toEqual(["constructor", "__proto__"]);
  });

  test("150,000 tools that share a word -> indexed and found", () => {
    const many = Array.from({ length: 150_000 }, (_, i) => ({ name: `s__t${i}`, description: "same" }));
    expect(ranked(many, ["same"], 2).names).toEqual(["s__t0", "s__t1"]);
  });
});

describe("search: bounded", () => {
  test("more words than any real query -> the first 64 count, and fewer in a very large catalog", () => {
    const terms = Array.from({ length: 500 }, (_, at) => `zzz${at}`);
    expect(ranked([{ name: "s__a", description: "" }], terms).unmatched).toEqual(terms.slice(0, 64));
    const many = Array.from({ length: 30_000 }, (_, at) => ({ name: `s__t${at}`, description: "" }));
    expect(ranked(many, terms).unmatched).toEqual(terms.slice(0, 8));
  });

  test("more different words than any real catalog -> the tools are found by the kept words, and by name", () => {
    const noise = Array.from({ length: 400 }, (_, at) => ({
      name: `s__noise${at}`,
      description: Array.from({ length: 300 }, (_, word) => `w${at}x${word}`).join(" "),
    }));
    const tools = [
      { name: "s__first", description: "needle" },
      ...noise,
      { name: "s__last", description: "" },
    ];
    expect(ranked(tools, ["needle"]).names).toEqual(["s__first"]);
    expect(ranked(tools, ["last"]).names).toEqual(["s__last"]);
    expect(buildWeighted(tools).byteLength).toBeLessThan(1_500_000);
  });

  test("thousands of equal scores -> as many as the limit, in the order of their names", () => {
    const tools = Array.from({ length: 5_000 }, (_, at) => ({
      name: `s__file_${5_000 - at}`,
      description: "",
    }));
    const expected = tools
      .map(({ name }) => name)
      .sort()
      .slice(0, 7);
    expect(ranked(tools, ["file"], 7).names).toEqual(expected);
  });
});
