import { describe, expect, test } from "vitest";
import { buildIndex } from "../../../../../src/shared/search/build.ts";
import { openIndex } from "../../../../../src/shared/search/index-format.ts";
import { searchIndex } from "../../../../../src/shared/search/ranked.ts";
import { WEIGHTS, type Weights } from "../../../../../src/shared/search/weights.ts";
import { catalog, searcher } from "../catalog.ts";

const search = searcher();

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
  ])("%s -> %s", (query, expected) => expect(search(query).ids[0]).toBe(expected));

  test("scores fall and are finite", () => {
    const { scores } = search("create a new issue");
    expect(scores.length).toBeGreaterThan(1);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    expect(scores.every((score) => Number.isFinite(score) && score > 0)).toBe(true);
  });

  test("a query always gives the same answer, for any queries before it", () => {
    const first = search("list files of a directory");
    search("weather create issue branches");
    expect(search("list files of a directory")).toEqual(first);
  });

  test.each([[0], [1], [3], [50]])("limit %i bounds the hits that are not pinned", (limit) => {
    expect(search("create list read search file", limit).ids.length).toBeLessThanOrEqual(limit);
  });

  test("a server filter is called once for each server and also applies to pins", () => {
    const asked: string[] = [];
    const { ids } = search("create_issue", 5, {
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
  ])("%j -> %j", (query, expected) => expect(search(query).unmatched).toEqual(expected));

  test("unknown words find nothing", () => expect(search("zzqqy xxkkj").ids).toEqual([]));
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
