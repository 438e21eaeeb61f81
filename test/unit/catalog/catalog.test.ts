import { describe, expect, it, test } from "vitest";
import {
  catalogFrom,
  catalogWithout,
  emptyCatalog,
  inputSchemaOf,
  sameDefinition,
} from "../../../src/catalog/catalog.ts";
import { searchCatalog, toolsNamed } from "../../../src/catalog/search.ts";
import { snapshotChecksum } from "../../../src/shared/snapshot/snapshot.ts";
import { type MadeTool, makeCatalog, makeSnapshotBytes, makeTool } from "../make-catalog.ts";

const SERVERS = [
  { name: "fs", description: "Files.", tools: [{ tool: "read", schema: { type: "object", title: "R" } }] },
  { name: "db", project: true, tools: [{ tool: "query" }, { tool: "read" }] },
];

describe("catalogFrom", () => {
  test("a snapshot -> servers, tools with their servers, checksum", () => {
    const bytes = makeSnapshotBytes(SERVERS);
    const catalog = catalogFrom(bytes);
    expect(catalog?.checksum).toBe(snapshotChecksum(bytes));
    expect(catalog?.servers).toEqual([
      { name: "fs", description: "Files.", project: false, toolsKnown: true },
      { name: "db", project: true, toolsKnown: true },
    ]);
    expect(catalog?.tools.map((tool) => [tool.name, tool.server.name])).toEqual([
      ["fs__read", "fs"],
      ["db__query", "db"],
      ["db__read", "db"],
    ]);
  });

  it.each([
    ["no bytes", new Uint8Array()],
    ["half of a snapshot", makeSnapshotBytes(SERVERS).subarray(0, 40)],
    ["text", Buffer.from("not a snapshot")],
  ])("%s -> undefined", (_name, bytes) => {
    expect(catalogFrom(bytes)).toBeUndefined();
  });
});

describe("catalog.get", () => {
  it.each([
    ["fs__read", true],
    ["read", false],
    ["FS__READ", false],
    ["constructor", false],
    ["", false],
  ])("%j -> found: %s", (name, found) => {
    expect(makeCatalog(SERVERS).get(name) !== undefined).toBe(found);
  });
});

describe.each(["ranked", "weighted"] as const)("catalog.search, %s", (search) => {
  const catalog = makeCatalog(SERVERS, { search });
  const names = (query: string, server?: string): string[] =>
    searchCatalog(catalog, query, 5, server).hits.map(({ tool }) => tool.name);

  test("words -> the tools, best first, and the words that no tool has", () => {
    const { hits, unmatched } = searchCatalog(catalog, "read db nothing", 5);
    expect(hits[0]?.tool).toBe(catalog.get("db__read"));
    expect(hits.map(({ score }) => score)).toEqual(hits.map(({ score }) => score).sort((a, b) => b - a));
    expect(unmatched).toEqual(["nothing"]);
  });

  test("a server -> only its tools", () => {
    expect(names("read", "fs")).toEqual(["fs__read"]);
    expect(names("read", "none")).toEqual([]);
  });

  test("searched twice -> the same answer", () => {
    expect(searchCatalog(catalog, "read", 5)).toEqual(searchCatalog(catalog, "read", 5));
  });

  it.each([
    ["fs__read", ["fs__read"]],
    ["mcp__fs__read", ["fs__read"]],
    ["FS/Read", ["fs__read"]],
    ["read", ["fs__read", "db__read"]],
    ["query", ["db__query"]],
    ["db__nothing", []],
    ["constructor", []],
    ["", []],
  ])("named %j -> %j", (name, found) => {
    expect(toolsNamed(catalog, name).map((tool) => tool.name)).toEqual(found);
  });
});

test("emptyCatalog: any question -> no answer", () => {
  const catalog = emptyCatalog();
  expect(catalog).toMatchObject({ checksum: undefined, servers: [], tools: [] });
  expect(catalog.get("a")).toBeUndefined();
  expect(toolsNamed(catalog, "a")).toEqual([]);
  expect(searchCatalog(catalog, "a", 5)).toEqual({ hits: [], unmatched: [] });
});

test("inputSchemaOf: a tool -> its schema", () => {
  expect(inputSchemaOf(makeTool({ tool: "t", schema: { type: "object", title: "T" } }))).toEqual({
    type: "object",
    title: "T",
  });
});

describe("sameDefinition", () => {
  const base: MadeTool = { tool: "t", description: "d", schema: { type: "object" } };
  it.each<[string, MadeTool, boolean]>([
    ["the same", base, true],
    ["another description", { ...base, description: "e" }, false],
    ["another schema", { ...base, schema: { type: "object", title: "x" } }, false],
    ["another name", { ...base, tool: "u" }, false],
    ["other hints, which the model does not see", { ...base, annotations: { readOnlyHint: true } }, true],
  ])("$0 -> $2", (_name, other, same) => {
    expect(sameDefinition(makeTool(base), makeTool(other))).toBe(same);
  });
});

describe.each(["ranked", "weighted"] as const)("catalogWithout, %s", (search) => {
  const whole = makeCatalog(SERVERS, { search });
  const names = (catalog: typeof whole, query: string, limit = 5): string[] =>
    searchCatalog(catalog, query, limit).hits.map(({ tool }) => tool.name);

  test("a server -> neither the server nor its tools are found", () => {
    const catalog = catalogWithout(whole, { servers: ["db"], tools: [] });
    expect(catalog.servers.map(({ name }) => name)).toEqual(["fs"]);
    expect(catalog.tools.map(({ name }) => name)).toEqual(["fs__read"]);
    expect([catalog.get("db__read"), catalog.get("fs__read")?.tool]).toEqual([undefined, "read"]);
    expect(toolsNamed(catalog, "db__read")).toEqual([]);
    expect(names(catalog, "query read")).toEqual(["fs__read"]);
  });

  test("a tool -> the other tools of its server stay, and move up among the results", () => {
    expect(names(whole, "read of fs", 1)).toEqual(["fs__read"]);
    const catalog = catalogWithout(whole, { servers: [], tools: [{ server: "fs", tool: "read" }] });
    expect(catalog.servers).toHaveLength(2);
    expect(names(catalog, "read of fs", 1)).toEqual(["db__read"]);
  });

  test("two removals -> both are gone; an empty removal -> no change", () => {
    const once = catalogWithout(whole, { servers: ["fs"], tools: [] });
    const twice = catalogWithout(once, { servers: [], tools: [{ server: "db", tool: "query" }] });
    expect(twice.tools.map(({ name }) => name)).toEqual(["db__read"]);
    const same = catalogWithout(whole, { servers: [], tools: [] });
    expect(names(same, "read query")).toEqual(names(whole, "read query"));
    expect(same.checksum).toBe(whole.checksum);
  });
});
