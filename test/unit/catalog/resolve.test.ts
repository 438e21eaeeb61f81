/** Owns: what counts as the same tool name, and what is near enough to be offered. */
import { describe, expect, it, test } from "vitest";
import { nearestNames, slipsBetween } from "../../../src/catalog/nearest.ts";
import { findServer, type Resolution, resolveTool, serverOfName } from "../../../src/catalog/resolve.ts";
import { makeCatalog } from "../make-catalog.ts";

const CATALOG = makeCatalog([
  { name: "git-hub", tools: [{ tool: "create_issue" }, { tool: "list-issues" }, { tool: "search" }] },
  { name: "web", tools: [{ tool: "search" }, { tool: "fetchPage" }] },
  { name: "odd", tools: [{ tool: "read_file" }, { tool: "readFile" }] },
]);

const names = (resolution: Resolution): string[] => {
  if (resolution.kind === "tool") return [resolution.tool.name];
  return (resolution.kind === "several" ? resolution.tools : resolution.nearest).map((tool) => tool.name);
};

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
  ])("%j -> %s %j", (written, kind, expected) => {
    const resolution = resolveTool(CATALOG, written);
    expect(resolution.kind).toBe(kind);
    expect(names(resolution).slice(0, Math.max(expected.length, kind === "unknown" ? 0 : 9))).toEqual(
      expected,
    );
  });

  test("with a server -> only its tools, also for what is near", () => {
    expect(names(resolveTool(CATALOG, "search", "web"))).toEqual(["web__search"]);
    expect(names(resolveTool(CATALOG, "serach", "web"))).toContain("web__search");
    expect(names(resolveTool(CATALOG, "serach", "web"))).not.toContain("git_hub__search");
  });
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

describe("nearestNames", () => {
  test("closest first, then as they stand, no more than asked", () => {
    const list = ["write_file", "read_files", "raed_file", "read_file", "delete"];
    expect(nearestNames("read_file", list, 3)).toEqual([3, 1, 2]);
    expect(nearestNames("READ_FILE", list, 1)).toEqual([3]);
  });

  test("nothing near -> nothing", () => {
    expect(nearestNames("zebra", ["read_file"], 3)).toEqual([]);
    expect(nearestNames("zebra", [], 3)).toEqual([]);
  });
});
