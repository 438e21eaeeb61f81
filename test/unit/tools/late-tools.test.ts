import { expect, it, test } from "vitest";
import type { PiTool } from "../../../src/pi/api.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { directRule } from "../../../src/tools/book.ts";
import { createLateTools, type LateToolsOptions } from "../../../src/tools/late-tools.ts";
import { type Reach, reached } from "../../../src/tools/outdated.ts";
import { createRegistrar } from "../../../src/tools/registrar.ts";
import { makeCatalog } from "../make-catalog.ts";
import { createRecordingPi } from "../recording-pi.ts";

const CATALOG = makeCatalog([
  { name: "my-docs", tools: [{ tool: "search-all" }, { tool: "open" }] },
  { name: "files", tools: [{ tool: "open" }] },
]);

it.each<[Reach, string[]]>([
  ["all", ["my_docs__search-all", "my_docs__open", "files__open"]],
  [[], []],
  [["open", "const", "await"], []],
  [["files__open"], ["files__open"]],
  [["my_docs__search_all"], ["my_docs__search-all", "my_docs__open"]],
  [["my_docs__"], ["my_docs__search-all", "my_docs__open"]],
])("reached: %j -> %j", (reach, names) => {
  expect(reached(CATALOG.tools, reach).map(({ name }) => name)).toEqual(names);
});

test("reached: a name without a server -> the tool whose whole name is the word", () => {
  const bare = CATALOG.tools.map((tool) => ({ ...tool, name: tool.tool }));
  expect(reached(bare, ["search_all"]).map(({ name }) => name)).toEqual(["search-all"]);
});

const reaching = (name: string, reach: Reach): PiTool => ({
  name,
  label: name,
  description: "",
  parameters: {},
  reachesTools: () => reach,
  execute: () => Promise.reject(new Error("not called")),
});

function setup(options: Partial<LateToolsOptions> = {}) {
  const pi = createRecordingPi();
  const call = (): Promise<never> => Promise.reject(new Error("not called"));
  const registrar = createRegistrar(pi, { call, direct: directRule(undefined) });
  for (const tool of [
    reaching("codemode", "all"),
    reaching("ToolSearch", "all"),
    reaching("files", ["files__open"]),
  ]) {
    pi.registerTool(tool);
  }
  // As the factory has done.
  if (options.catalog) registrar.registerAll(options.catalog());
  const late = createLateTools(pi, {
    registrar,
    catalog: () => CATALOG,
    ownTools: ["ToolSearch"],
    isLearning: () => false,
    settle: () => Promise.reject(new Error("not waited for")),
    isOver: () => false,
    ...options,
  });
  return { late, registered: () => pi.registrations.filter((name) => name.includes("__")) };
}

it.each([
  ["codemode", ["my_docs__search-all", "my_docs__open", "files__open"]],
  ["files", ["files__open"]],
  ["ToolSearch", []],
  ["bash", []],
])("beforeCall: %s -> registered: %j", async (tool, names) => {
  const { late, registered } = setup();
  await late.beforeCall(tool, {});
  await late.beforeCall(tool, {});
  expect(registered()).toEqual(names);
});

test("beforeCall: servers whose tools will soon be known -> waited for; if the wait fails, the known tools are registered", async () => {
  let waits = 0;
  const settle = (): Promise<never> => {
    waits++;
    return Promise.reject(new Error("no worker"));
  };
  const { late, registered } = setup({ isLearning: () => true, settle });
  await late.beforeCall("bash", {});
  expect(waits).toBe(0);
  await late.beforeCall("codemode", {});
  expect(waits).toBe(1);
  expect(registered()).toHaveLength(3);
});

test("beforeCall: the session has ended meanwhile -> nothing is registered", async () => {
  const { late, registered } = setup({ isOver: () => true });
  await late.beforeCall("codemode", {});
  expect(registered()).toEqual([]);
});

test("beforeCall: far more tools than Pi is told of -> everything: within a limit; named ones: always", async () => {
  const tools = Array.from({ length: LIMITS.lateTools + 100 }, (_, at) => ({ tool: `t${at}` }));
  const vast = makeCatalog([
    { name: "vast", tools },
    { name: "files", tools: [{ tool: "open" }] },
  ]);
  const { late, registered } = setup({ catalog: () => vast });
  expect(registered()).toEqual([]);
  await late.beforeCall("bash", {});
  expect(registered()).toEqual([]);
  await late.beforeCall("files", {});
  expect(registered()).toEqual(["files__open"]);
  await late.beforeCall("codemode", {});
  expect(registered()).toHaveLength(LIMITS.lateTools);
  await late.beforeCall("codemode", {});
  expect(registered()).toHaveLength(LIMITS.lateTools);
});
