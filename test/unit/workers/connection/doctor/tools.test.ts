/** Owns: what the doctor says about tools: tokens, names, repairs, and what is left out. */
import { describe, expect, test } from "vitest";
import { type CatalogFacts, catalogFacts } from "../../../../../workers/connection/catalog/notices.ts";
import { checkTools, judgeTools } from "../../../../../workers/connection/doctor/tools.ts";
import { examined, makeInput } from "./support.ts";

const FACTS: CatalogFacts = { tools: [], taken: [], repairs: [], leftOut: [], problems: [] };
const tool = (server: string, over: Partial<CatalogFacts["tools"][number]> = {}) => ({
  server,
  direct: 0,
  directTokens: 0,
  cut: undefined,
  ...over,
});

describe("judgeTools", () => {
  const told = (over: Partial<CatalogFacts>): string[] =>
    judgeTools({ ...FACTS, ...over }, new Set(["a"])).map(
      ({ severity, id, server, title }) => `${severity} ${id} ${server}: ${title}`,
    );

  test.each<[string, Partial<CatalogFacts>, string[]]>([
    ["nothing", {}, []],
    ["within the budget", { tools: [tool("a", { direct: 9, directTokens: 5_000 })] }, []],
    [
      "over the budget",
      { tools: [tool("a", { direct: 9, directTokens: 12_345 })] },
      ["warning tokens a: Its 9 tools declared from the start cost about 12,345 tokens of each request."],
    ],
    [
      "cut names",
      { tools: [tool("a", { cut: { count: 2, tool: "x\ny", name: "a__x_1" } })] },
      ["note tool-names a: 2 tool names too long for providers, cut and marked: x y is a__x_1."],
    ],
    [
      "taken names",
      { taken: [{ server: "a", text: "names" }] },
      ["note tool-names a: Tools are renamed: names."],
    ],
    [
      "repairs",
      { repairs: [{ server: "a", text: "schemas repaired" }] },
      ["note schemas a: Schemas repaired."],
    ],
    [
      "left out",
      { leftOut: ["a", "b"], problems: ["the tool catalog exceeds 1 MB"] },
      [
        "warning left-out a: Its tools are left out: preparing them fails or takes too long.",
        "warning left-out undefined: the tool catalog exceeds 1 MB.",
      ],
    ],
    [
      "another server",
      { repairs: [{ server: "b", text: "x" }], tools: [tool("b", { directTokens: 10 ** 6 })] },
      [],
    ],
  ])("%s", (_title, facts, expected) => {
    expect(told(facts)).toEqual(expected);
  });
});

test("catalogFacts: tokens of direct tools, long names, lines by server", () => {
  const long = "x".repeat(80);
  const task = {
    servers: [
      {
        name: "a",
        project: false,
        toolsKnown: true,
        tools: [
          { name: long, description: "d".repeat(400), inputSchema: { type: "object" }, direct: true },
          { name: "b", inputSchema: { type: "object" }, direct: false },
        ],
      },
    ],
    settings: {} as never,
  };
  const facts = catalogFacts(
    task as never,
    {
      checksum: 1,
      problems: ["p"],
      notices: [{ server: "a", text: "names that are taken: x" }],
      repairs: [{ server: "a", text: "schemas repaired" }],
      threadId: 1,
    },
    ["z"],
  );
  const [first] = facts.tools;
  expect(first).toMatchObject({ server: "a", direct: 1, cut: { count: 1, tool: long } });
  expect(first?.directTokens).toBeGreaterThan(120);
  expect(first?.directTokens).toBeLessThan(160);
  expect(first?.cut?.name).toMatch(/^a__x+_[0-9a-z]{6}$/);
  expect(facts).toMatchObject({
    taken: [{ server: "a", text: "names that are taken: x" }],
    repairs: [{ server: "a", text: "schemas repaired" }],
    leftOut: ["z"],
    problems: ["p"],
  });
});

test("checkTools: the catalog cannot be made -> a note", async () => {
  const input = makeInput([examined("a", { command: "c" })], { catalog: { inspect: async () => undefined } });
  expect(await checkTools(input, new AbortController().signal)).toMatchObject([{ id: "unfinished" }]);
});
