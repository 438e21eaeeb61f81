/** Owns: what Pi is told of tools, and when it is not told again. */
import { describe, expect, test } from "vitest";
import type { Catalog, CatalogTool } from "../../../src/catalog/catalog.ts";
import { directRule } from "../../../src/tools/direct.ts";
import { createRegistrar } from "../../../src/tools/registrar.ts";
import { makeCatalog } from "../make-catalog.ts";
import { createRecordingPi } from "../recording-pi.ts";

const neverCalled = (): Promise<never> => Promise.reject(new Error("not called"));

const OPTIONS = { call: neverCalled, direct: directRule(undefined) };

const catalogOf = (descriptions: Record<string, string>): Catalog =>
  makeCatalog([
    { name: "s", tools: Object.entries(descriptions).map(([tool, description]) => ({ tool, description })) },
  ]);

const toolOf = (catalog: Catalog, name: string): CatalogTool => {
  const tool = catalog.get(name);
  if (!tool) throw new Error(`no ${name}`);
  return tool;
};

describe("registrar.registerAll", () => {
  test("a catalog -> every tool is registered once, none is activated", () => {
    const pi = createRecordingPi();
    createRegistrar(pi, OPTIONS).registerAll(catalogOf({ a: "A", b: "B" }));
    expect(pi.registrations).toEqual(["s__a", "s__b"]);
    expect(pi.activations).toEqual([]);
  });
});

describe("registrar.follow", () => {
  test("an active tool with other bytes -> registered again", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.follow(() => catalogOf({ a: "A, changed" }), false);
    expect(pi.registrations).toEqual(["s__a", "s__a"]);
    expect(pi.tools.get("s__a")?.description).toBe("A, changed");
  });

  test("an active tool with another schema -> registered again", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(makeCatalog([{ name: "s", tools: [{ tool: "a" }] }]));
    const schema = { type: "object", properties: { x: {} } };
    registrar.follow(() => makeCatalog([{ name: "s", tools: [{ tool: "a", schema }] }]), false);
    expect(structuredClone(pi.tools.get("s__a")?.parameters)).toEqual(schema);
  });

  test("an active tool with the same bytes -> not registered again, the prompt cache stays", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.follow(() => catalogOf({ a: "A", b: "new" }), false);
    expect(pi.registrations).toEqual(["s__a"]);
  });

  test("a changed tool that is not active, a new one -> Pi is told nothing; an active one that vanished -> hidden", () => {
    const pi = createRecordingPi({ active: ["s__gone", "read"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A", gone: "G" }));
    registrar.follow(() => catalogOf({ a: "other", b: "new" }), false);
    expect(pi.registrations).toEqual(["s__a", "s__gone", "s__gone"]);
    expect(pi.tools.get("s__gone")?.exposure).toBe("hidden");
  });

  test("an active tool of Pi's own that shares a name -> not taken over", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    createRegistrar(pi, OPTIONS).follow(() => catalogOf({ a: "A" }), false);
    expect(pi.registrations).toEqual([]);
  });
});

describe("registrar.activate", () => {
  test("unregistered tools -> registered, then added after what was active", () => {
    const pi = createRecordingPi({ active: ["read", "bash"] });
    const catalog = catalogOf({ a: "A", b: "B" });
    const result = createRegistrar(pi, OPTIONS).activate([toolOf(catalog, "s__b"), toolOf(catalog, "s__a")]);
    expect(pi.registrations).toEqual(["s__b", "s__a"]);
    expect(pi.activations).toEqual([["read", "bash", "s__b", "s__a"]]);
    expect(result).toMatchObject({ active: [{ name: "s__b" }, { name: "s__a" }], refused: [] });
  });

  test("tools that are active already -> neither registered nor set again", () => {
    const pi = createRecordingPi();
    const tool = toolOf(catalogOf({ a: "A" }), "s__a");
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.activate([tool]);
    expect(registrar.activate([tool])).toMatchObject({ active: [{ name: "s__a" }], refused: [] });
    expect(pi.registrations).toEqual(["s__a"]);
    expect(pi.activations).toHaveLength(1);
  });

  test("a registered tool with other bytes -> registered again before it is activated", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "old" }));
    registrar.activate([toolOf(catalogOf({ a: "new" }), "s__a")]);
    expect(pi.tools.get("s__a")?.description).toBe("new");
  });

  test("tools that Pi does not let through -> refused, the others active", () => {
    const pi = createRecordingPi({ allowed: ["s__a"] });
    const catalog = catalogOf({ a: "A", b: "B" });
    const result = createRegistrar(pi, OPTIONS).activate([...catalog.tools]);
    expect(result).toMatchObject({ active: [{ name: "s__a" }], refused: [{ name: "s__b" }] });
  });

  test("no tools -> Pi is told nothing", () => {
    const pi = createRecordingPi({ active: ["read"] });
    expect(createRegistrar(pi, OPTIONS).activate([])).toEqual({ active: [], refused: [] });
    expect(pi.activations).toEqual([]);
  });
});

describe("names that change or are another's", () => {
  /** A catalog of one server `s`, in which each tool bears the given name. */
  const named = (names: Record<string, string>, bare = false): Catalog => {
    const catalog = catalogOf(Object.fromEntries(Object.keys(names).map((tool) => [tool, "Does it."])));
    const tools = catalog.tools.map((tool) => ({ ...tool, name: names[tool.tool] ?? "", bare }));
    return { ...catalog, tools, get: (name) => tools.find((tool) => tool.name === name) };
  };

  test("follow: an active tool under another name -> the old withdrawn, the new active in its place", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(named({ a: "s__a", b: "s__b" }));
    pi.setActiveTools(["read", "s__a", "bash"]);
    registrar.follow(() => named({ a: "mcp__s__a", b: "mcp__s__b" }), false);
    expect(pi.registrations).toEqual(["s__a", "s__b", "s__a", "mcp__s__a"]);
    expect(pi.tools.get("s__a")?.exposure).toBe("hidden");
    expect(pi.getActiveTools()).toEqual(["read", "mcp__s__a", "bash"]);
    registrar.follow(() => named({ a: "s__a", b: "s__b" }), false);
    expect(pi.tools.get("s__a")?.exposure).toBe("deferred");
    expect(pi.getActiveTools()).toEqual(["read", "s__a", "bash"]);
  });

  test("registerAll: names without a server -> not in the factory; activate: registered then", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    const catalog = named({ a: "a" }, true);
    registrar.registerAll(catalog);
    expect(pi.registrations).toEqual([]);
    expect(registrar.activate(catalog.tools).active).toMatchObject([{ name: "a" }]);
  });

  test("activate: another extension has the name -> the server's whole one, told once, kept", () => {
    const pi = createRecordingPi();
    pi.registerTool({ name: "a", label: "", description: "", parameters: {}, execute: neverCalled });
    const told: string[] = [];
    const onTaken = (tool: CatalogTool, name: string): void => void told.push(`${tool.name} is ${name}`);
    const registrar = createRegistrar(pi, { ...OPTIONS, onTaken });
    const catalog = named({ a: "a" }, true);
    for (let i = 0; i < 2; i++) {
      expect(registrar.activate(catalog.tools).active).toMatchObject([{ name: "s__a", tool: "a" }]);
    }
    registrar.follow(() => named({ a: "a" }, true), false);
    expect(pi.registrations).toEqual(["a", "s__a"]);
    expect(told).toEqual(["a is s__a"]);
  });

  test("outdated, renew: what Pi does not know or knows by an old name, until it is told", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(named({ a: "s__a", gone: "s__gone" }));
    const catalog = named({ a: "mcp__s__a", b: "s__b" });
    const due = registrar.outdated(catalog);
    expect(due.map(({ name }) => name)).toEqual(["mcp__s__a", "s__b", "s__a", "s__gone"]);
    for (const tool of due) registrar.renew(tool, catalog);
    expect(registrar.outdated(catalog)).toEqual([]);
    const reachable = [...pi.tools.values()].filter(({ exposure }) => exposure !== "hidden");
    expect(reachable.map(({ name }) => name).toSorted()).toEqual(["mcp__s__a", "s__b"]);
  });
});
