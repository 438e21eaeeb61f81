/** Owns: how what the worker tells of a server's tools is joined with the catalog. */
import { expect, test } from "vitest";
import { listTools, toolRow } from "../../../../src/ui/panel/tool-list.ts";
import { makeCatalog } from "../../make-catalog.ts";
import { makeDetails } from "./support.ts";

const PLACE = { rule: 'excludeTools "w*"', file: "/mcp.json", line: 3 };
const TOLD = {
  names: ["Read", "write"],
  exposures: ["direct" as const, "hidden" as const],
  rules: [-1, 0],
  places: [PLACE],
};

test("a tool that the catalog holds -> its name in Pi, its description, and both for the filter in small letters", async () => {
  const catalog = makeCatalog([{ name: "git", tools: [{ tool: "Read", description: "Reads IT." }] }]);
  const list = await listTools("git", makeDetails({ tools: TOLD }), catalog, () => false);
  expect(list?.rows[0]).toEqual({
    key: "Read",
    name: "git__Read",
    description: "Reads IT.",
    exposure: "direct",
    place: undefined,
    text: "read\nreads it.",
  });
  expect(list?.at).toEqual(
    new Map([
      ["Read", 0],
      ["write", 1],
    ]),
  );
});

test("a hidden tool -> no name in Pi, and the rule that hides it", () => {
  expect(toolRow(TOLD, 1, undefined)).toMatchObject({ name: undefined, exposure: "hidden", place: PLACE });
});

test("a tool of another server with the same name -> it is not taken for this server's", async () => {
  const catalog = makeCatalog([{ name: "fs", tools: [{ tool: "Read" }] }]);
  const list = await listTools("git", makeDetails({ tools: TOLD }), catalog, () => false);
  expect(list?.rows[0]?.name).toBeUndefined();
});

test("columns of unequal length -> the tool is deferred, by no rule", () => {
  expect(toolRow({ names: ["a"], exposures: [], rules: [], places: [] }, 0, undefined)).toMatchObject({
    exposure: "search",
    place: undefined,
  });
});

test("nobody wants the list any more -> there is none", async () => {
  expect(await listTools("git", makeDetails({ tools: TOLD }), makeCatalog([]), () => true)).toBeUndefined();
});
