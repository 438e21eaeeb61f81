import { expect, it, test } from "vitest";
import { isLost, takenByOff } from "../../../src/tools/taken.ts";
import { makeCatalog } from "../make-catalog.ts";
import { createRecordingPi } from "../recording-pi.ts";

const system = (message: object) => ({ type: "message", message: { role: "system", ...message } });
const names = (...all: string[]) => all.map((name) => ({ name, parameters: {} }));
const off = (...servers: unknown[]) => ({ type: "custom", customType: "mcp-off", data: { off: servers } });
const on = { type: "custom", customType: "mcp-off", data: {} };
const add = system({ toolsAdded: names("a", "b") });
const remove = system({ toolsRemoved: names("a", "b") });
const removeB = system({ toolsRemoved: names("b") });
const elsewhere = (entry: object) => ({ ...entry, elsewhere: true });
it.each<[string, object[], object]>([
  ["while nothing is off", [add, remove], {}],
  ["before a server is off", [add, removeB, off("s")], {}],
  ["while servers are off", [add, off("s", "t"), remove], { a: ["s", "t"], b: ["s", "t"] }],
  [
    "one before, one while a server is off",
    [add, removeB, off("s"), system({ toolsRemoved: names("a") })],
    { a: ["s"] },
  ],
  ["and they are on again", [add, off("s"), remove, on], { a: ["s"], b: ["s"] }],
  ["while off, then declared again", [add, off("s"), remove, on, add], {}],
  ["after that: deactivated by the user", [add, off("s"), remove, on, add, removeB], {}],
  ["while off is said on another branch", [add, elsewhere(off("s")), remove], { a: ["s"], b: ["s"] }],
  ["on another branch", [add, off("s"), elsewhere(remove)], {}],
  [
    "entries that somebody edited",
    [{ customType: "mcp-off" }, { customType: "mcp-off", data: { off: "s" } }, remove],
    {},
  ],
])("takenByOff: tools that are removed %s -> $2", (_when, entries, taken) => {
  const branch = entries.filter((entry) => !("elsewhere" in entry));
  const found = [...takenByOff([null, 5, ...entries], branch)].map(([name, servers]) => [name, [...servers]]);
  expect(Object.fromEntries(found)).toEqual(taken);
});

test("isLost: a tool of the server that was off, unless the model has it; a tool of another server -> not", () => {
  const pi = createRecordingPi({ active: ["s__b"] });
  const { tools } = makeCatalog(["s", "t"].map((name) => ({ name, tools: [{ tool: "a" }, { tool: "b" }] })));
  const entries = [off("s"), system({ toolsRemoved: names(...tools.map(({ name }) => name)) })];
  expect(tools.filter(isLost(pi, entries, entries)).map(({ name }) => name)).toEqual(["s__a"]);
});
