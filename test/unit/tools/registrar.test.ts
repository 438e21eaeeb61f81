import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, test } from "vitest";
import {
  type Catalog,
  type CatalogTool,
  catalogWithout,
  emptyCatalog,
} from "../../../src/catalog/catalog.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SnapshotServer } from "../../../src/shared/snapshot/contract.ts";
import { currentOf, directRule, isGone } from "../../../src/tools/book.ts";
import type { DeclaredTool } from "../../../src/tools/branch.ts";
import { createRegistrar, type Registrar, type RegistrarOptions } from "../../../src/tools/registrar.ts";
import { type MadeServer, makeCatalog } from "../make-catalog.ts";
import { createRecordingPi, type RecordingPi } from "../recording-pi.ts";

const neverCalled = (): Promise<never> => Promise.reject(new Error("not called"));
const OPTIONS: RegistrarOptions = { call: neverCalled, direct: directRule(undefined) };

const catalogOf = (descriptions: Record<string, string>): Catalog =>
  makeCatalog([
    { name: "s", tools: Object.entries(descriptions).map(([tool, description]) => ({ tool, description })) },
  ]);

const of = (...servers: MadeServer[]): Catalog => makeCatalog(servers);

const toolOf = (catalog: Catalog, name: string): CatalogTool => {
  const tool = catalog.get(name);
  if (!tool) throw new Error(`no ${name}`);
  return tool;
};

describe("registrar.registerAll", () => {
  test("a catalog -> every tool is registered once and none is activated", () => {
    const pi = createRecordingPi();
    createRegistrar(pi, OPTIONS).registerAll(catalogOf({ a: "A", b: "B" }));
    expect(pi.registrations).toEqual(["s__a", "s__b"]);
    expect(pi.activations).toEqual([]);
  });
});

describe("a catalog of more tools than Pi is told of at the start", () => {
  const MANY = LIMITS.toolsAtStart + 1;
  const tools = Array.from({ length: MANY }, (_, at) => ({
    tool: `t${at}`,
    ...(at === 7 ? { direct: true } : {}),
    ...(at === 9 ? { bare: true, direct: true } : {}),
  }));
  const vast = makeCatalog([{ name: "s", tools }]);

  test("one tool fewer -> every tool; at this size -> the direct ones; a bare one only with follow", () => {
    const all = createRecordingPi();
    createRegistrar(all, OPTIONS).registerAll(makeCatalog([{ name: "s", tools: tools.slice(0, -2) }]));
    expect(all.registrations).toHaveLength(MANY - 3);
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(vast);
    expect(pi.registrations).toEqual(["s__t7"]);
    registrar.follow(() => vast, true);
    expect(pi.registrations).toEqual(["s__t7", "t9"]);
    expect(registrar.count()).toBe(2);
  });

  test("MCP_DIRECT_TOOLS names a tool -> this one alone", () => {
    const pi = createRecordingPi();
    createRegistrar(pi, { ...OPTIONS, direct: directRule("s/t999") }).registerAll(vast);
    expect(pi.registrations).toEqual(["s__t999"]);
  });

  test("a tool that is found, a tool that the branch has declared -> registered then", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(vast);
    const found = registrar.activate([toolOf(vast, "s__t500")]);
    expect(found.active.map(({ name }) => name)).toEqual(["s__t500"]);
    const declared = new Map([["s__t600", { name: "s__t600", description: "", parameters: {} }]]);
    expect(registrar.restore(vast, { declared, serverOf: () => undefined })).toBe(0);
    expect(pi.registrations).toEqual(["s__t7", "s__t500", "s__t600"]);
  });

  test("a server is gone -> its direct tools too", () => {
    expect(vast.marked().map(({ name }) => name)).toEqual(["s__t7", "t9"]);
    expect(catalogWithout(vast, { servers: ["s"], tools: [] }).marked()).toEqual([]);
  });
});

describe("a server that has other direct tools with each list", () => {
  const direct = (nth: number): Catalog =>
    of({ name: "s", tools: [{ tool: `t${nth}`, direct: true }] }, { name: "o", tools: [{ tool: "other" }] });
  /** As Pi declares a direct tool that is registered. */
  function follow(pi: RecordingPi, registrar: Registrar, catalog: Catalog): void {
    const before = pi.registrations.length;
    registrar.follow(() => catalog, true);
    const direct = pi.registrations.slice(before).filter((name) => pi.tools.get(name)?.exposure === "direct");
    pi.setActiveTools([...new Set([...pi.getActiveTools(), ...direct])]);
  }
  function change(count: number) {
    const pi = createRecordingPi();
    const full: string[] = [];
    const registrar = createRegistrar(pi, { ...OPTIONS, onTooMany: (server) => full.push(server) });
    for (let nth = 0; nth < count; nth++) follow(pi, registrar, direct(nth));
    return { pi, registrar, full };
  }

  test("as many are gone as may be -> no new one is declared by itself, told once; one that Pi knows is, as is one that is searched", () => {
    const { pi, registrar, full } = change(LIMITS.goneTools);
    const newest = `s__t${LIMITS.goneTools - 1}`;
    expect(registrar.count()).toBe(LIMITS.goneTools);
    expect([pi.getActiveTools().includes(newest), full]).toEqual([true, []]);
    for (const nth of [LIMITS.goneTools, LIMITS.goneTools + 1]) follow(pi, registrar, direct(nth));
    expect(registrar.count()).toBe(LIMITS.goneTools);
    expect([pi.getActiveTools(), full]).toEqual([[], ["s"]]);
    const again = direct(7);
    follow(pi, registrar, again);
    expect(pi.getActiveTools()).toEqual(["s__t7"]);
    const searched = direct(LIMITS.goneTools + 3);
    registrar.activate([toolOf(searched, `s__t${LIMITS.goneTools + 3}`)]);
    expect(pi.getActiveTools()).toContain(`s__t${LIMITS.goneTools + 3}`);
  });

  test("another server's direct tools -> declared all the same", () => {
    const { pi, registrar } = change(LIMITS.goneTools + 2);
    const catalog = of({ name: "o", tools: [{ tool: "fresh", direct: true }] });
    follow(pi, registrar, catalog);
    expect(pi.getActiveTools()).toContain("o__fresh");
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

  test("an active tool with the same bytes -> not registered again, so the prompt cache stays valid", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.follow(() => catalogOf({ a: "A", b: "new" }), false);
    expect(pi.registrations).toEqual(["s__a"]);
  });

  test("a changed tool that is not active, a new tool -> Pi is told nothing", () => {
    const pi = createRecordingPi({ active: ["read"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A", gone: "G" }));
    registrar.follow(() => catalogOf({ a: "other", b: "new" }), false);
    expect(pi.registrations).toEqual(["s__a", "s__gone"]);
  });

  it.each<[string, Catalog, boolean]>([
    ["that its server no longer lists", catalogOf({ other: "O" }), true],
    ["whose server is gone", makeCatalog([]), true],
    [
      "whose server is down and has told nothing",
      makeCatalog([{ name: "s", toolsKnown: false, tools: [] }]),
      false,
    ],
    ["while no snapshot is known", emptyCatalog(), false],
  ])("an active tool %s -> withdrawn: $2", (_name, after, withdrawn) => {
    const pi = createRecordingPi({ active: ["s__gone", "read"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ gone: "G" }));
    registrar.follow(() => after, false);
    expect(pi.tools.get("s__gone")?.exposure).toBe(withdrawn ? "hidden" : "deferred");
    expect(pi.registrations).toHaveLength(withdrawn ? 2 : 1);
  });

  test("a withdrawn tool that is back with the same bytes -> registered again", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.follow(() => makeCatalog([]), false);
    registrar.follow(() => catalogOf({ a: "A" }), false);
    expect(pi.tools.get("s__a")?.exposure).toBe("deferred");
  });

  it.each([
    [true, ["s__b"]],
    [false, []],
  ])("new tools, one direct, wantsDirect %s -> registered: %j", (wantsDirect, registered) => {
    const pi = createRecordingPi({ active: ["read"] });
    const catalog = makeCatalog([{ name: "s", tools: [{ tool: "a" }, { tool: "b", direct: true }] }]);
    createRegistrar(pi, OPTIONS).follow(() => catalog, wantsDirect);
    expect(pi.registrations).toEqual(registered);
    for (const name of registered) expect(pi.tools.get(name)?.exposure).toBe("direct");
  });

  it.each([
    [[], "direct"],
    [["s__b"], "deferred"],
  ])("a deferred tool becomes direct while %j is active -> registered as %s", (active, exposure) => {
    const pi = createRecordingPi({ active });
    const registrar = createRegistrar(pi, OPTIONS);
    const now = (direct: boolean): Catalog =>
      of({ name: "s", tools: [{ tool: "a" }, { tool: "b", direct }] });
    registrar.registerAll(now(false));
    for (let i = 0; i < 2; i++) registrar.follow(() => now(true), true);
    expect(pi.registrations.slice(2)).toEqual(exposure === "direct" ? ["s__b"] : []);
    expect(pi.tools.get("s__b")?.exposure).toBe(exposure);
  });

  it.each([
    ["the rule declared it", [], []],
    ["the model had loaded it", ["s__b"], ["s__b"]],
  ])(
    "a tool goes from deferred to direct, hidden and deferred, %s -> %j before, %j after",
    (_who, before, after) => {
      const pi = createRecordingPi({ active: before });
      const registrar = createRegistrar(pi, OPTIONS);
      const now = (direct: boolean): Catalog =>
        of({ name: "s", tools: [{ tool: "a" }, { tool: "b", direct }] });
      registrar.registerAll(now(false));
      registrar.follow(() => now(true), true);
      // Pi declares what is registered as direct.
      pi.setActiveTools(["s__b"]);
      registrar.follow(() => of({ name: "s", tools: [{ tool: "a" }] }), true);
      expect(pi.tools.get("s__b")?.exposure).toBe("hidden");
      registrar.follow(() => now(false), true);
      expect(pi.getActiveTools()).toEqual(after);
      registrar.follow(() => now(true), true);
      expect(pi.tools.get("s__b")?.exposure).toBe(after.length > 0 ? "deferred" : "direct");
    },
  );

  test("an active tool of another extension with the same name -> left alone", () => {
    const pi = createRecordingPi({ active: ["s__a"] });
    createRegistrar(pi, OPTIONS).follow(() => catalogOf({ a: "A" }), false);
    expect(pi.registrations).toEqual([]);
  });
});

describe("registrar.withdrawAll", () => {
  test("tools that fit -> hidden, once", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(
      makeCatalog([
        { name: "mine", tools: [{ tool: "a" }] },
        { name: "theirs", project: true, tools: [{ tool: "b" }] },
      ]),
    );
    for (let i = 0; i < 2; i++) registrar.withdrawAll(({ server }) => server.project);
    expect(pi.registrations).toEqual(["mine__a", "theirs__b", "theirs__b"]);
    expect(pi.tools.get("theirs__b")?.exposure).toBe("hidden");
  });
});

describe("registrar.withdrawAll, tools that the model is to get back", () => {
  const s = (direct: boolean): MadeServer => ({
    name: "s",
    tools: ["a", "b"].map((tool) => ({ tool, direct })),
  });

  it.each([
    [true, false],
    [false, false],
    [true, true],
  ])(
    "direct: %s, hidden already: %s -> declared again with the server, once; other tools stay away",
    (direct, isHidden) => {
      const pi = createRecordingPi({ active: ["read"] });
      const registrar = createRegistrar(pi, OPTIONS);
      const catalog = of(s(direct), { name: "t", tools: [{ tool: "a", direct }] });
      registrar.registerAll(catalog);
      if (isHidden) registrar.withdrawAll(({ name }) => name === "s__a");
      // At each new branch.
      for (let i = 0; i < 2; i++) registrar.withdrawAll(({ name }) => name === "s__a", true);
      registrar.follow(() => of({ name: "t", tools: [{ tool: "a", direct }] }), true);
      expect(pi.getActiveTools()).toEqual(["read"]);
      for (let i = 0; i < 2; i++) registrar.follow(() => catalog, true);
      expect(pi.getActiveTools()).toEqual(["read", "s__a"]);
      expect(pi.registrations).toEqual(["s__a", "s__b", "t__a", "s__a", "s__a"]);
      pi.setActiveTools(["read"]);
      registrar.follow(() => catalog, true);
      expect(pi.getActiveTools()).toEqual(["read"]);
    },
  );
});

describe("registrar.restore", () => {
  const declared = (name: string): DeclaredTool => ({ name, description: "As it was.", parameters: SCHEMA });
  const SCHEMA = { type: "object", properties: { z: {}, a: {} }, title: "T" };
  const restoreIn = (pi: RecordingPi, catalog: Catalog, server?: SnapshotServer): number =>
    createRegistrar(pi, OPTIONS).restore(catalog, {
      declared: new Map([["s__a", declared("s__a")]]),
      serverOf: () => server,
    });

  test("a tool of the catalog -> registered as the catalog has it", () => {
    const pi = createRecordingPi();
    restoreIn(pi, catalogOf({ a: "A" }));
    expect(pi.tools.get("s__a")?.description).toBe("A");
  });

  test("a tool of a server that told nothing -> registered byte for byte as the branch has it", () => {
    const pi = createRecordingPi();
    restoreIn(pi, makeCatalog([]), { name: "s", project: false, toolsKnown: false });
    const tool = pi.tools.get("s__a");
    expect(tool?.description).toBe("As it was.");
    expect(JSON.stringify(tool?.parameters)).toBe(JSON.stringify(SCHEMA));
  });

  test("a tool of a server that is known without it, as one for its own pages -> not registered, and nobody is waited for", () => {
    const pi = createRecordingPi();
    expect(restoreIn(pi, catalogOf({ b: "B" }), { name: "s", project: false, toolsKnown: true })).toBe(0);
    expect(pi.registrations).toEqual([]);
  });

  test("a tool that belongs to no known server -> not registered", () => {
    const pi = createRecordingPi();
    restoreIn(pi, makeCatalog([]));
    expect(pi.registrations).toEqual([]);
  });

  it.each<[string, Catalog, string]>([
    ["that the catalog holds again", catalogOf({ a: "A" }), "A"],
    [
      "of a server that tells nothing now",
      makeCatalog([{ name: "s", toolsKnown: false, tools: [] }]),
      "As it was.",
    ],
  ])("a withdrawn tool %s -> registered and declared", (_name, catalog, description) => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A" }));
    registrar.withdrawAll(() => true);
    const branch = new Map([["s__a", declared("s__a")]]);
    const restored = { declared: branch, serverOf: () => catalog.servers[0] };
    for (let i = 0; i < 2; i++) expect(registrar.restore(catalog, restored)).toBe(0);
    expect(pi.registrations).toEqual(["s__a", "s__a", "s__a"]);
    expect(pi.tools.get("s__a")).toMatchObject({ description, exposure: "deferred" });
    expect(pi.getActiveTools()).toEqual(["s__a"]);
  });

  test("a tool that Pi has from another extension or from us -> unchanged", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalogOf({ a: "A" }));
    restoreIn(pi, catalogOf({ a: "other" }));
    registrar.restore(catalogOf({ a: "other" }), {
      declared: new Map([["s__a", declared("s__a")]]),
      serverOf: () => undefined,
    });
    expect(pi.registrations).toEqual(["s__a"]);
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

  test("tools that Pi does not allow -> refused; the other tools are active", () => {
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

test("outdated: tens of thousands of tools -> main does other work in between", async () => {
  const [one] = catalogOf({ a: "Does it." }).tools;
  if (!one) throw new Error("no tool was made");
  const tools = Array.from({ length: 60_000 }, (_, at) => ({ ...one, name: `s__t${at}`, tool: `t${at}` }));
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const catalog: Catalog = {
    ...catalogOf({}),
    count: tools.length,
    tools,
    tool: (at) => tools[at] as CatalogTool,
    get: (name) => byName.get(name),
    marked: () => tools.slice(0, 30_000).map((tool) => ({ ...tool, direct: true })),
  };
  const registrar = createRegistrar(createRecordingPi(), OPTIONS);
  registrar.registerAll(catalog);
  let turns = 0;
  const timer = setInterval(() => turns++, 0);
  expect(await registrar.outdated(catalog)).toHaveLength(30_000);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(0);
});

describe("names that change or belong to another extension", () => {
  /** A catalog of one server `s`, in which each tool bears the given name. */
  const named = (names: Record<string, string>, bare = false): Catalog => {
    const catalog = catalogOf(Object.fromEntries(Object.keys(names).map((tool) => [tool, "Does it."])));
    const tools = catalog.tools.map((tool) => ({ ...tool, name: names[tool.tool] ?? "", bare }));
    const get = (name: string) => tools.find((tool) => tool.name === name);
    return { ...catalog, count: tools.length, tools, tool: (at) => tools[at] as CatalogTool, get };
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

  /** The servers whose tools are called, in order. */
  function recordedCalls() {
    const called: string[] = [];
    const call: RegistrarOptions["call"] = ({ server }) => {
      called.push(server);
      return neverCalled();
    };
    return { called, call };
  }

  const SEARCH = [{ tool: "search" }];
  const BARE = [{ tool: "search", bare: true }];
  it.each([
    [["search", "b__search"], "stay", ["a__search", "search"]],
    [["b__search", "search"], "stay", ["search", "a__search"]],
    [["search", "b__search"], "are gone meanwhile", ["a__search", "search"]],
    [["b__search", "search"], "are gone meanwhile", ["search", "a__search"]],
  ] as const)(
    "follow: %j, the tool of b gets the name that the tool of a had, both %s -> %j, each of its own server",
    async (active, meanwhile, names) => {
      const pi = createRecordingPi();
      const { called, call } = recordedCalls();
      const registrar = createRegistrar(pi, { ...OPTIONS, call });
      const before = of({ name: "a", tools: BARE }, { name: "b", tools: SEARCH });
      registrar.activate(active.map((name) => toolOf(before, name)));
      if (meanwhile !== "stay") registrar.follow(() => of(), false);
      registrar.follow(() => of({ name: "a", tools: SEARCH }, { name: "b", tools: BARE }), false);
      expect(pi.getActiveTools()).toEqual(names);
      for (const name of ["a__search", "search"])
        await pi.tools.get(name)?.execute("1", {}, undefined, undefined, {} as never);
      expect(called).toEqual(["a", "b"]);
      expect(pi.tools.get("b__search")?.exposure).toBe("hidden");
    },
  );

  test("follow: the name of a tool that is gone goes to another one, and its server comes back -> both are declared", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    const both = of({ name: "a", tools: SEARCH }, { name: "b", tools: BARE });
    registrar.activate([toolOf(both, "a__search"), toolOf(both, "search")]);
    registrar.follow(() => of({ name: "a", tools: BARE }), false);
    expect(pi.getActiveTools()).toEqual(["search"]);
    registrar.follow(() => both, false);
    expect(pi.getActiveTools()).toEqual(["a__search", "search"]);
    expect(["a__search", "search"].map((name) => pi.tools.get(name)?.exposure)).toEqual([
      "deferred",
      "deferred",
    ]);
  });

  test("follow: the new name is that of a tool which the model does not have, with the same bytes -> its own server", async () => {
    const pi = createRecordingPi();
    const { called, call } = recordedCalls();
    const registrar = createRegistrar(pi, { ...OPTIONS, call });
    const before = of({ name: "a", tools: BARE }, { name: "b", tools: SEARCH });
    registrar.provide(toolOf(before, "search"));
    registrar.activate([toolOf(before, "b__search")]);
    registrar.follow(() => of({ name: "a", tools: SEARCH }, { name: "b", tools: BARE }), false);
    await pi.tools.get("search")?.execute("1", {}, undefined, undefined, {} as never);
    expect([called, pi.getActiveTools()]).toEqual([["b"], ["search"]]);
  });

  test("follow: a withdrawn tool that is back under another name -> declared again, once", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(named({ a: "s__a" }));
    pi.setActiveTools(["s__a"]);
    registrar.follow(() => makeCatalog([]), false);
    expect(pi.getActiveTools()).toEqual([]);
    const catalog = named({ a: "mcp__s__a" });
    for (let i = 0; i < 2; i++) registrar.follow(() => catalog, false);
    expect(pi.registrations).toEqual(["s__a", "s__a", "mcp__s__a"]);
    expect(pi.getActiveTools()).toEqual(["mcp__s__a"]);
  });

  test("registerAll: names without a server -> not in the factory; activate: registered then", () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    const catalog = named({ a: "a" }, true);
    registrar.registerAll(catalog);
    expect(pi.registrations).toEqual([]);
    expect(registrar.activate(catalog.tools).active).toMatchObject([{ name: "a" }]);
  });

  test("activate: another extension has the name -> the name with the server, reported once and kept", () => {
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

  test("follow: the bare name goes over to another server's tool -> that tool gets the name with its own server", () => {
    const pi = createRecordingPi();
    pi.registerTool({ name: "a", label: "", description: "", parameters: {}, execute: neverCalled });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.activate(named({ a: "a" }, true).tools);
    const other = makeCatalog([{ name: "t", tools: [{ tool: "a", bare: true }] }]);
    expect(registrar.activate(other.tools).active).toMatchObject([{ name: "t__a", server: { name: "t" } }]);
  });

  test("outdated, renew: tools that Pi does not know, or knows by an old name, until Pi is told", async () => {
    const pi = createRecordingPi();
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(named({ a: "s__a", gone: "s__gone" }));
    const catalog = named({ a: "mcp__s__a", b: "s__b" });
    const due = await registrar.outdated(catalog);
    expect(due.map(({ name }) => name)).toEqual(["mcp__s__a", "s__b", "s__a", "s__gone"]);
    for (const tool of due) registrar.renew(tool, catalog);
    expect(await registrar.outdated(catalog)).toEqual([]);
    const reachable = [...pi.tools.values()].filter(({ exposure }) => exposure !== "hidden");
    expect(reachable.map(({ name }) => name).toSorted()).toEqual(["mcp__s__a", "s__b"]);
  });
});

const TOOL = makeCatalog([{ name: "s", tools: [{ tool: "a" }] }]).get("s__a") as CatalogTool;

/** The catalog with every tool under another name in Pi. */
function renamed(catalog: Catalog): Catalog {
  const tools = catalog.tools.map((tool) => ({ ...tool, name: `mcp__${tool.name}` }));
  const get = (name: string) => tools.find((tool) => tool.name === name);
  return { ...catalog, tools, tool: (at) => tools[at] as CatalogTool, get };
}

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
  ])("%s -> now $1, gone: $2", (_name, catalog, name, gone) => {
    expect(currentOf(catalog, TOOL)?.name).toBe(name);
    expect(isGone(TOOL, catalog)).toBe(gone);
  });
});

const tool = (name: string, server: string, direct: boolean) => ({
  tool: name,
  server: { name: server },
  direct,
});

describe("directRule", () => {
  it.each<[string | undefined, boolean, boolean, boolean]>([
    [undefined, false, true, false],
    ["", false, true, false],
    [" , ", false, true, false],
    ["*", true, true, true],
    ["__none__", false, false, false],
    ["*,__none__", false, false, false],
    ["docs", true, true, false],
    ["docs/read", true, false, false],
    [" docs/read , git ", true, false, true],
    ["doc", false, false, false],
    ["docs/", false, false, false],
    ["DOCS", false, false, false],
  ])("%j -> docs/read: %s, configured docs/write: %s, git/log: %s", (variable, read, write, log) => {
    const rule = directRule(variable);
    expect(rule.isDirect(tool("read", "docs", false))).toBe(read);
    expect(rule.isDirect(tool("write", "docs", true))).toBe(write);
    expect(rule.isDirect(tool("log", "git", false))).toBe(log);
  });

  it.each<[string | undefined, boolean, boolean]>([
    [undefined, true, true],
    [undefined, false, false],
    ["*", false, true],
    ["docs", false, true],
    ["docs/read", false, true],
    ["git", true, false],
    ["__none__", true, false],
  ])("%j, configured %s -> concerns docs: %s", (variable, configured, concerned) => {
    expect(directRule(variable).concerns("docs", configured)).toBe(concerned);
  });
});

test("MCP_DIRECT_TOOLS names more tools than may be direct -> the first ones, in the order in which they are asked about", () => {
  const rule = directRule("*");
  const ask = (at: number): boolean => rule.isDirect(tool(`t${at}`, "s", false));
  const most = LIMITS.directTools;
  expect(Array.from({ length: most + 2 }, (_, at) => ask(at)).lastIndexOf(true)).toBe(most - 1);
  expect([ask(0), ask(most - 1), ask(most)]).toEqual([true, true, false]);
});

const used = (toolName: string, details: unknown = {}): unknown => ({
  type: "message",
  message: { role: "toolResult", toolName, details },
});

describe("registrar.letGo", () => {
  const MANY = LIMITS.declaredTools + 10;
  const names = Array.from({ length: MANY }, (_, at) => `s__t${at}`);
  const tools = names.map((name) => ({ tool: name.slice(3) }));

  function opened(direct = 0, active = names) {
    const catalog = of({ name: "s", tools: tools.map((one, at) => ({ ...one, direct: at < direct })) });
    const pi = createRecordingPi({ active: ["read", ...active, "theirs__tool"] });
    const registrar = createRegistrar(pi, OPTIONS);
    registrar.registerAll(catalog);
    return { pi, registrar };
  }
  const left = (pi: RecordingPi): string[] => pi.getActiveTools().filter((name) => name.startsWith("s__"));

  test("no more than may be -> nothing is set and the branch is not read", async () => {
    const { pi, registrar } = opened(0, names.slice(0, LIMITS.declaredTools));
    await registrar.letGo(() => expect.unreachable(), LIMITS.declaredTools);
    expect(pi.activations).toEqual([]);
  });

  test("one more -> those that were called or loaded last stay, in their order, and tools of others", async () => {
    const { pi, registrar } = opened();
    const loadedLast = names.slice(60, 80);
    const branch = [
      null,
      used("s__t3"),
      ...names.slice(4, 60).map((name) => used(name)),
      used("ToolSearch", { loaded: [...loadedLast, 7, null] }),
      used("s__t1"),
      { type: "message", message: { role: "user", toolName: "s__t2" } },
      used("x", { loaded: "s__t2" }),
    ];
    await registrar.letGo(() => branch, LIMITS.declaredTools);
    const kept = LIMITS.declaredToolsKept;
    expect(left(pi)).toEqual(["s__t1", ...names.slice(80 - kept + 1, 80)]);
    expect(pi.getActiveTools()).toEqual(["read", ...left(pi), "theirs__tool"]);
    expect(pi.activations).toHaveLength(1);
    // The next ones have room: no request loses its prompt cache for them.
    await registrar.letGo(() => expect.unreachable(), LIMITS.declaredTools);
  });

  test("direct tools -> they stay, and beside them what one search loads", async () => {
    const { pi, registrar } = opened(LIMITS.directTools);
    await registrar.letGo(() => [used("ToolSearch", { loaded: names.slice(-20) })], LIMITS.declaredTools);
    expect(left(pi)).toEqual([...names.slice(0, LIMITS.directTools), ...names.slice(-20)]);
    // A compaction finds nothing more to let go.
    await registrar.letGo(() => [], LIMITS.declaredToolsKept);
    expect(pi.activations).toHaveLength(1);
  });

  test("a tool that was let go -> a search declares it again, and a restored branch that lacks it does not", async () => {
    const { pi, registrar } = opened();
    await registrar.letGo(() => [], LIMITS.declaredTools);
    const catalog = of({ name: "s", tools });
    registrar.follow(() => catalog, false);
    registrar.restore(catalog, { declared: new Map(), serverOf: () => undefined });
    expect(left(pi)).toHaveLength(LIMITS.declaredToolsKept);
    const gone = toolOf(catalog, names.at(-1) ?? "");
    expect(left(pi)).not.toContain(gone.name);
    expect(registrar.activate([gone]).active).toEqual([gone]);
    expect(left(pi)).toContain(gone.name);
  });
});

test("a tool of a later catalog is declared -> Pi keeps that tool, and not the catalog's bytes", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const tools = Array.from({ length: 50 }, (_, at) => ({
    tool: `t${at}`,
    schema: { type: "object", properties: { a: { description: "x".repeat(2_000) } } },
  }));
  const pi = createRecordingPi();
  const registrar = createRegistrar(pi, OPTIONS);
  const snapshots = ["one", "two", "three"].map((description, at) => {
    const catalog = of({ name: "s", description, instructions: "Words.", tools });
    const found = toolOf(catalog, `s__t${at}`);
    registrar.activate([found]);
    return new WeakRef(found.schemas.input(0).buffer);
  });
  // The decoder holds the bytes that it has read last.
  of({ name: "other", tools: [] });
  // A reference is strong until the task that made it has ended.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(snapshots.map((bytes) => bytes.deref()?.byteLength)).toEqual([undefined, undefined, undefined]);
  const declared = [0, 1, 2].map((at) => pi.tools.get(`s__t${at}`));
  for (const tool of declared) expect(structuredClone(tool?.parameters)).toEqual(tools[0]?.schema);
  expect(declared[1]?.namespace).toEqual({
    name: "s",
    aliases: ["s"],
    description: "two",
    instructions: "Words.",
  });
});
