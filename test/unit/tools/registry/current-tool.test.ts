/** Owns: how a tool is found again in a newer catalog, and when it counts as gone. */
import { describe, expect, it } from "vitest";
import type { Catalog, CatalogTool } from "../../../../src/catalog/known.ts";
import { currentOf, isGone } from "../../../../src/tools/registry/current-tool.ts";
import { type MadeServer, makeCatalog } from "../../make-catalog.ts";

const TOOL = makeCatalog([{ name: "s", tools: [{ tool: "a" }] }]).get("s__a") as CatalogTool;

/** The catalog with every tool under another name in Pi. */
function renamed(catalog: Catalog): Catalog {
  const tools = catalog.tools.map((tool) => ({ ...tool, name: `mcp__${tool.name}` }));
  const get = (name: string) => tools.find((tool) => tool.name === name);
  return { ...catalog, tools, tool: (at) => tools[at] as CatalogTool, get };
}

const of = (...servers: MadeServer[]): Catalog => makeCatalog(servers);

describe("a tool s__a in a newer catalog", () => {
  it.each<[string, Catalog, string | undefined, boolean]>([
    ["that holds it", of({ name: "s", tools: [{ tool: "a" }] }), "s__a", false],
    [
      "that holds it under another name",
      renamed(of({ name: "s", tools: [{ tool: "a" }] })),
      "mcp__s__a",
      false,
    ],
    ["whose server lists other tools", of({ name: "s", tools: [{ tool: "b" }] }), undefined, true],
    ["whose server lists no tools", of({ name: "s", tools: [] }), undefined, true],
    ["without its server", of({ name: "other", tools: [{ tool: "a" }] }), undefined, true],
    ["whose server is down and unknown", of({ name: "s", toolsKnown: false, tools: [] }), undefined, false],
    ["in which another server has its name", of({ name: "s-mcp", tools: [{ tool: "a" }] }), undefined, true],
  ])("%s -> now %2$s, gone: %3$s", (_name, catalog, name, gone) => {
    expect(currentOf(catalog, TOOL)?.name).toBe(name);
    expect(isGone(TOOL, catalog)).toBe(gone);
  });
});
