import { describe, expect, it, test } from "vitest";
import type { Catalog } from "../../../src/catalog/catalog.ts";
import {
  findServer,
  nearestNames,
  nearestTools,
  resolveTool,
  serverOfName,
} from "../../../src/catalog/search.ts";
import { slipsBetween } from "../../../src/shared/text/reading.ts";
import { makeCatalog } from "../make-catalog.ts";

const CATALOG = makeCatalog([
  { name: "git-hub", tools: [{ tool: "create_issue" }, { tool: "list-issues" }, { tool: "search" }] },
  { name: "web", tools: [{ tool: "search" }, { tool: "fetchPage" }] },
  { name: "odd", tools: [{ tool: "read_file" }, { tool: "readFile" }] },
]);

/** Names of the tool, of all tools that share the name, or of the nearest tools. */
async function resolved(
  catalog: Catalog,
  written: string,
  server?: string,
): Promise<{ kind: string; names: string[] }> {
  const resolution = resolveTool(catalog, written, server);
  const { kind } = resolution;
  if (resolution.kind === "tool") return { kind, names: [resolution.tool.name] };
  const tools =
    resolution.kind === "several" ? resolution.tools : await nearestTools(catalog, written, server);
  return { kind, names: tools.map((tool) => tool.name) };
}

describe("resolveTool", () => {
  it.each([
    ["git_hub__create_issue", "tool", ["git_hub__create_issue"]],
    ["git-hub__create-issue", "tool", ["git_hub__create_issue"]],
    ["mcp__git-hub__create_issue", "tool", ["git_hub__create_issue"]],
    ["git-hub/create_issue", "tool", ["git_hub__create_issue"]],
    ["createIssue", "tool", ["git_hub__create_issue"]],
    ["CREATE_ISSUE", "tool", ["git_hub__create_issue"]],
    ["listIssues", "tool", ["git_hub__list-issues"]],
    ["fetch_page", "tool", ["web__fetchPage"]],
    ["search", "several", ["git_hub__search", "web__search"]],
    ["web__search", "tool", ["web__search"]],
    ["read_file", "tool", ["odd__read_file"]],
    ["readFile", "tool", ["odd__readFile"]],
    ["git_hub__creat_isue", "unknown", ["git_hub__create_issue"]],
    ["web__create_issue", "unknown", []],
    ["slack__search", "unknown", ["git_hub__search", "web__search"]],
    ["zzqqy", "unknown", []],
    ["", "unknown", []],
  ])("%j -> %s %j", async (written, kind, expected) => {
    const resolution = await resolved(CATALOG, written);
    expect(resolution.kind).toBe(kind);
    expect(resolution.names.slice(0, Math.max(expected.length, kind === "unknown" ? 0 : 9))).toEqual(
      expected,
    );
  });

  test("with a server -> only its tools, also among the nearest", async () => {
    expect((await resolved(CATALOG, "search", "web")).names).toEqual(["web__search"]);
    expect((await resolved(CATALOG, "serach", "web")).names).toContain("web__search");
    expect((await resolved(CATALOG, "serach", "web")).names).not.toContain("git_hub__search");
  });

  test.each(["ranked", "weighted"] as const)(
    "one name on hundreds of servers, ranked %s -> the first ones; with a server, or spelled exactly, the one tool",
    async (search) => {
      const servers = Array.from({ length: 300 }, (_, at) => ({
        name: `s${at}`,
        tools: [{ tool: "find-it" }],
      }));
      const catalog = makeCatalog([...servers, { name: "last", tools: [{ tool: "FindIt" }] }], { search });
      const all = await resolved(catalog, "find_it");
      expect(all.kind).toBe("several");
      expect(all.names).toHaveLength(32);
      expect((await resolved(catalog, "find_it", "s250")).names).toEqual(["s250__find-it"]);
      expect((await resolved(catalog, "FindIt")).names).toEqual(["last__FindIt"]);
      expect((await resolved(catalog, "find_it", "gone")).kind).toBe("unknown");
    },
  );
});

it.each([
  ["git-hub__x", "git-hub"],
  ["git_hub__x", "git-hub"],
  ["mcp__Git-Hub__x", "git-hub"],
  ["git-hub/x", "git-hub"],
  ["git-hub-two__x", "git-hub-two"],
  ["git-hubx", undefined],
  ["other__x", undefined],
  ["", undefined],
])("serverOfName(%j) -> %j", (written, server) => {
  expect(serverOfName(written, ["git-hub", "git-hub-two"])).toBe(server);
});

it.each([
  ["git-hub", "git-hub"],
  ["GIT_HUB", "git-hub"],
  ["githu", undefined],
])("findServer(%j) -> %j", (written, server) => {
  expect(findServer(written, ["git-hub", "web"])).toBe(server);
});

it.each([
  ["same", "same", 0],
  ["list", "lists", 1],
  ["lsit", "list", 1],
  ["list", "mist", 1],
  ["create", "craete_", 2],
  ["abcd", "wxyz", 3],
  ["", "abc", 3],
])("slipsBetween(%j, %j, 2) -> %i", (a, b, slips) => {
  expect(slipsBetween(a, b, 2)).toBe(slips);
});

test("slipsBetween: two names of a million characters -> compared by their start", () => {
  const long = "x".repeat(1_000_000);
  expect(slipsBetween(`${long}a`, `b${long}`, 3)).toBe(1);
  expect(slipsBetween(`${"a".repeat(500_000)}${"b".repeat(500_000)}`, "ba".repeat(500_000), 3)).toBe(4);
});

test("slipsBetween: only what differs is compared, whatever stands around it", () => {
  const around = "server_with_a_long_name__";
  for (const [a, b, slips] of [
    ["lsit", "list", 1],
    ["create", "craete_", 2],
    ["abcd", "wxyz", 3],
    ["", "ab", 2],
  ] as const) {
    expect(slipsBetween(`${around}${a}_of`, `${around}${b}_of`, 2)).toBe(slips);
    expect(slipsBetween(`${around}${b}_of`, `${around}${a}_of`, 2)).toBe(slips);
  }
});

describe("nearestNames", () => {
  test("the closest first, then in their order, at most as many as asked", async () => {
    const list = ["write_file", "read_files", "raed_file", "read_file", "delete"];
    expect(await nearestNames("read_file", list, 3)).toEqual([3, 1, 2]);
    expect(await nearestNames("READ_FILE", list, 1)).toEqual([3]);
  });

  test("no near name -> no answer", async () => {
    expect(await nearestNames("zebra", ["read_file"], 3)).toEqual([]);
    expect(await nearestNames("zebra", [], 3)).toEqual([]);
  });

  test("thousands of near names -> the closest; of equally close ones the first", async () => {
    const list = Array.from({ length: 5_000 }, (_, at) =>
      at === 4_000 ? "read_file" : `read_file${at % 10}`,
    );
    expect(await nearestNames("read_file", list, 3)).toEqual([4_000, 0, 1]);
  });

  test("very many names -> main does other work in between", async () => {
    const list = Array.from({ length: 300_000 }, (_, at) => `${"prefix_that_all_share_".repeat(2)}${at}`);
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    await nearestNames(`${"prefix_that_all_share_".repeat(2)}x`, list, 3);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });
});
