/** Owns: what Pi is told of tools, and when it is not told again. */
import { describe, expect, test } from "vitest";
import type { Catalog, CatalogTool } from "../../../src/catalog/catalog.ts";
import { createRegistrar } from "../../../src/tools/registrar.ts";
import { makeCatalog } from "../make-catalog.ts";
import { createRecordingPi } from "../recording-pi.ts";

const neverCalled = (): Promise<never> => Promise.reject(new Error("not called"));

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
    createRegistrar(pi, neverCalled).registerAll(catalogOf({ a: "A", b: "B" }));
    expect(pi.registrations).toEqual(["s__a", "s__b"]);
    expect(pi.activations).toEqual([]);
  });
});

describe("registrar.follow", () => {
  test("an active tool with other bytes -> registered again", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, neverCalled);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.follow(() => catalogOf({ a: "A, changed" }));
    expect(pi.registrations).toEqual(["s__a", "s__a"]);
    expect(pi.tools.get("s__a")?.description).toBe("A, changed");
  });

  test("an active tool with another schema -> registered again", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, neverCalled);
    registrar.registerAll(makeCatalog([{ name: "s", tools: [{ tool: "a" }] }]));
    const schema = { type: "object", properties: { x: {} } };
    registrar.follow(() => makeCatalog([{ name: "s", tools: [{ tool: "a", schema }] }]));
    expect(structuredClone(pi.tools.get("s__a")?.parameters)).toEqual(schema);
  });

  test("an active tool with the same bytes -> not registered again, the prompt cache stays", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, neverCalled);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.follow(() => catalogOf({ a: "A", b: "new" }));
    expect(pi.registrations).toEqual(["s__a"]);
  });

  test("a changed tool that is not active, a new one, a vanished one -> Pi is told nothing", () => {
    const pi = createRecordingPi({ active: ["s__gone", "read"] });
    const registrar = createRegistrar(pi, neverCalled);
    registrar.registerAll(catalogOf({ a: "A", gone: "G" }));
    registrar.follow(() => catalogOf({ a: "other", b: "new" }));
    expect(pi.registrations).toEqual(["s__a", "s__gone"]);
  });

  test("an active tool of Pi's own that shares a name -> not taken over", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    createRegistrar(pi, neverCalled).follow(() => catalogOf({ a: "A" }));
    expect(pi.registrations).toEqual([]);
  });
});

describe("registrar.activate", () => {
  test("unregistered tools -> registered, then added after what was active", () => {
    const pi = createRecordingPi({ active: ["read", "bash"] });
    const catalog = catalogOf({ a: "A", b: "B" });
    const result = createRegistrar(pi, neverCalled).activate([
      toolOf(catalog, "s__b"),
      toolOf(catalog, "s__a"),
    ]);
    expect(pi.registrations).toEqual(["s__b", "s__a"]);
    expect(pi.activations).toEqual([["read", "bash", "s__b", "s__a"]]);
    expect(result).toMatchObject({ active: [{ name: "s__b" }, { name: "s__a" }], refused: [] });
  });

  test("tools that are active already -> neither registered nor set again", () => {
    const pi = createRecordingPi();
    const tool = toolOf(catalogOf({ a: "A" }), "s__a");
    const registrar = createRegistrar(pi, neverCalled);
    registrar.activate([tool]);
    expect(registrar.activate([tool])).toMatchObject({ active: [{ name: "s__a" }], refused: [] });
    expect(pi.registrations).toEqual(["s__a"]);
    expect(pi.activations).toHaveLength(1);
  });

  test("a registered tool with other bytes -> registered again before it is activated", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, neverCalled);
    registrar.registerAll(catalogOf({ a: "old" }));
    registrar.activate([toolOf(catalogOf({ a: "new" }), "s__a")]);
    expect(pi.tools.get("s__a")?.description).toBe("new");
  });

  test("tools that Pi does not let through -> refused, the others active", () => {
    const pi = createRecordingPi({ allowed: ["s__a"] });
    const catalog = catalogOf({ a: "A", b: "B" });
    const result = createRegistrar(pi, neverCalled).activate([...catalog.tools]);
    expect(result).toMatchObject({ active: [{ name: "s__a" }], refused: [{ name: "s__b" }] });
  });

  test("no tools -> Pi is told nothing", () => {
    const pi = createRecordingPi({ active: ["read"] });
    expect(createRegistrar(pi, neverCalled).activate([])).toEqual({ active: [], refused: [] });
    expect(pi.activations).toEqual([]);
  });
});
