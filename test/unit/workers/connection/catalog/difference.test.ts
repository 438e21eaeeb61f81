/** Owns: which changes between two publications are removals only. */
import { describe, expect, test } from "vitest";
import type { CatalogSettings } from "../../../../../src/shared/protocol/catalog.ts";
import { DEFAULT_CATALOG_SETTINGS } from "../../../../../src/shared/protocol/catalog.ts";
import { isNothing, removedSince } from "../../../../../workers/connection/catalog/difference.ts";
import type { CatalogServer, PublishedTool } from "../../../../../workers/shared/tasks.ts";

const SCHEMA = { type: "object" };
const tool = (name: string, more: Partial<PublishedTool> = {}): PublishedTool => ({
  name,
  inputSchema: SCHEMA,
  direct: false,
  ...more,
});
const server = (name: string, tools: PublishedTool[], more: Partial<CatalogServer> = {}): CatalogServer => ({
  name,
  project: false,
  toolsKnown: true,
  tools,
  ...more,
});
const [read, write, list] = [tool("read"), tool("write"), tool("list")] as const;
const before = [server("a", [read, write, list]), server("b", [read]), server("c", [])];
const [a, b, c] = before as [CatalogServer, CatalogServer, CatalogServer];

const since = (servers: CatalogServer[], settings: CatalogSettings = DEFAULT_CATALOG_SETTINGS) =>
  removedSince({ servers: before, settings: DEFAULT_CATALOG_SETTINGS }, { servers, settings });

describe("removedSince", () => {
  test.each<[string, CatalogServer[], string[], string[]]>([
    ["the same", [a, b, c], [], []],
    ["the same in new objects", [server("a", [read, write, list]), { ...b }, c], [], []],
    ["the first server gone", [b, c], ["a"], []],
    ["the last two gone", [a], ["b", "c"], []],
    ["all gone", [], ["a", "b", "c"], []],
    ["tools gone", [server("a", [write]), b, c], [], ["a/read", "a/list"]],
    ["a server and a tool gone", [server("a", [read, list]), c], ["b"], ["a/write"]],
  ])("%s", (_, servers, gone, tools) => {
    const removed = since(servers);
    expect(removed?.servers).toEqual(gone);
    expect(removed?.tools.map((one) => `${one.server}/${one.tool}`)).toEqual(tools);
    expect(removed && isNothing(removed)).toBe(gone.length + tools.length === 0);
  });

  test.each<[string, CatalogServer[]]>([
    ["a new server", [...before, server("d", [])]],
    ["a new server in place of another", [server("d", []), b, c]],
    ["another order of servers", [b, a, c]],
    ["a new tool", [a, server("b", [read, write]), c]],
    ["another order of tools", [server("a", [write, read, list]), b, c]],
    ["a tool that is direct now", [server("a", [{ ...read, direct: true }, write, list]), b, c]],
    ["a tool in a new object", [server("a", [{ ...read, inputSchema: { ...SCHEMA } }, write, list]), b, c]],
    ["another description", [{ ...a, description: "d" }, b, c]],
    ["another prefix", [{ ...a, prefix: "mcp" }, b, c]],
    ["tools no longer known", [{ ...a, toolsKnown: false }, b, c]],
  ])("%s -> not only removals", (_, servers) => {
    expect(since(servers)).toBeUndefined();
  });

  test("another setting -> not only removals", () => {
    expect(since([a, b, c], { ...DEFAULT_CATALOG_SETTINGS, proxyTool: true })).toBeUndefined();
    expect(since([b], { ...DEFAULT_CATALOG_SETTINGS, search: "weighted" })).toBeUndefined();
  });
});
