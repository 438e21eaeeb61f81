/** Owns: tests of MCP tools as Pi tools, in the real Pi: names, resources, schemas, and codemode scripts. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { nameTools } from "../../src/shared/naming.ts";
import { type ModelRequest, toolResultTexts } from "../support/model.ts";
import type { PiHome } from "../support/pi-run.ts";
import { extensionErrors, notices } from "../support/rpc-events.ts";
import { type InTurn, inTurn } from "./in-turn.ts";
import { type Opened, PATIENCE_MS } from "./rpc-support.ts";
import { inSession, tellTogether } from "./stories.ts";
import { call, ENTRY, fixtureServer, readLog, root, SERVERS, searchFor } from "./support.ts";

const PERMISSION = join(root, "test/fixtures/permission-extension.mjs");
const OTHER = join(root, "test/fixtures/extension-with-tool.mjs");
const shapes = fixtureServer("shapes.mjs");
const results = (request: ModelRequest | undefined): string[] => (request ? toolResultTexts(request) : []);
/** The answers that the model has read last. */
const read = ({ scripted }: Opened): string[] => results(scripted.requests.at(-1));

/** An extension before ours, which registers the tool of `OTHER` if the project has this file. */
const THEIRS_FIRST = "theirs-first";
const firstExtension = (at: PiHome): string => `
import { existsSync } from "node:fs";
import theirs from ${JSON.stringify(pathToFileURL(OTHER).href)};
export default (pi) => existsSync(${JSON.stringify(join(at.cwd, THEIRS_FIRST))}) && theirs(pi);`;

const turn = inTurn({
  extensions: async (at) => {
    const first = join(at.tmpDir, "first.mjs");
    await writeFile(first, firstExtension(at));
    return [first, ENTRY];
  },
});
const withExtension = (path: string) => ({ extensions: ["-builtin:mcp", path] });

describe("toolPrefix", () => {
  test("a server's toolPrefix beside the settings' toolPrefix, with names that Pi and another server have -> loaded and called by the assigned names, cold and from the snapshot; changed while Pi runs -> the loaded tools have their new names, and the old names are gone", async () => {
    const mcpServers = {
      a: shapes,
      b: shapes,
      "one-mcp": { ...shapes, toolPrefix: "server" },
      "two-mcp": { ...shapes, toolPrefix: "short" },
      "three-mcp": { ...shapes, toolPrefix: "mcp" },
    };
    // With "none", a tool whose name is taken gets its full name: Pi has a tool `read`, and server a comes before b.
    const searches = ["search", "b__search", "one_mcp__search", "two__search", "mcp__three_mcp__search"];
    const names = [...searches, "a__read"];
    const pi = await turn({ mcp: { settings: { toolPrefix: "none" }, mcpServers } });
    for (const start of ["cold", "warm"]) {
      const toolCalls = names.flatMap((name) => call(name, { q: start }).toolCalls);
      await pi.prompt(searchFor(`select:${names.join(",")}`), { toolCalls });
      // The user gets the notice about Pi's `read` once, not in each session.
      const told = notices(pi.rpc.events).some(({ message }) => message.includes("read (of Pi)"));
      expect(told).toBe(start === "cold");
      expect(pi.scripted.requests[1]?.toolNames).toEqual(expect.arrayContaining(names));
      expect(read(pi).slice(1)).toEqual([
        ...searches.map(() => `search {"q":"${start}"}`),
        `read {"q":"${start}"}`,
      ]);
      if (start === "warm") continue;
      const log = await readLog(pi.at);
      expect(log.match(/a: names that are taken: read \(of Pi\) is a__read/g)).toHaveLength(1);
      expect(log).toContain("search (of a) is b__search");
      await pi.again();
    }

    await pi.at.writeMcp({ settings: { toolPrefix: "mcp" }, mcpServers });
    await pi.notice(/toolPrefix/);
    const since = pi.scripted.requests.length;
    const ends = await pi.prompt(call("mcp__b__search", { q: "renamed" }));
    const renamed = pi.scripted.requests[since]?.toolNames ?? [];
    expect(renamed).toEqual(expect.arrayContaining(["mcp__a__search", "mcp__b__search", "one_mcp__search"]));
    expect(renamed.filter((name) => /^(search|b__search)$/.test(name))).toEqual([]);
    expect(ends).toMatchObject([{ toolName: "mcp__b__search", isError: false }]);
    expect(extensionErrors(pi.rpc.events)).toEqual([]);
  });

  test.each([
    ["ours first", { settings: withExtension(OTHER) }],
    ["theirs first", { files: { [THEIRS_FIRST]: "" } }],
  ])(
    "none, another extension has a tool of the same name, %s -> Pi starts, both tools are declared",
    async (_order, more) => {
      const server = { ...shapes, directTools: ["search", "measure"] };
      const settings = { toolPrefix: "none" };
      const pi = await turn({ mcp: { settings, mcpServers: { s: server } }, ...more });
      const declared = ["search", "s__search", "measure"];
      const calls = {
        toolCalls: [...call("search", {}).toolCalls, ...call("s__search", { q: "x" }).toolCalls],
      };
      for (const cold of [[searchFor("measure")], []]) {
        await pi.prompt(...cold, calls);
        expect(pi.scripted.requests[cold.length]?.toolNames).toEqual(expect.arrayContaining(declared));
        expect(read(pi).slice(-2)).toEqual(["theirs", 'search {"q":"x"}']);
        if (cold.length > 0) await pi.again();
      }
      expect(await readLog(pi.at)).toContain("another extension has a tool search");
    },
  );
});

const ANYTHING = { description: "Any value." };
const LONG = `long_${"x".repeat(195)}`;
const LISTED: Record<string, unknown> = {
  labels: {
    type: "object",
    properties: {
      labels: { type: "array", items: { type: "string" } },
      filter: { type: "object" },
      id: { type: "integer" },
    },
  },
  nulls: { type: "object", properties: { a: null, b: "string", c: [], d: { items: [1] } } },
  capitals: { type: "OBJECT", properties: { a: { type: "STRING" } }, required: ["a", "a"] },
  draft4: { type: "object", properties: { a: { type: "number", minimum: 1, exclusiveMinimum: true } } },
  filter: {
    type: "object",
    properties: { "filter[id]": { type: "string" } },
    required: ["filter[id]"],
    additionalProperties: false,
  },
  [LONG]: { type: "object" },
};
const [cut = ""] = nameTools([{ server: "t", tool: LONG }]).names;
const listedTools = Object.entries(LISTED).map(([name, inputSchema]) => ({ name, inputSchema }));

type Calls = [name: string, args: Record<string, unknown>][];
const asOneTurn = (calls: Calls) => ({ toolCalls: calls.map(([name, args]) => ({ name, args })) });
const answersTo = (calls: Calls): string[] =>
  calls.map(([name, args]) => `${name.slice(3)} ${JSON.stringify(args)}`);

const RESOURCES = ["everything__get_architecture_md", "everything__get_dynamic_text_resource"];
const FILTERED = ["a__search", "a__tree", "a__union", "b__search", "b__tree", "b__measure"];
const CHOKING: Calls = [
  ["s__union", { id: "1" }],
  ["s__tree", { root: { children: [{ children: [] }] }, gone: 5 }],
  ["s__pattern", { a: "b" }],
];
const ODD: Calls = [
  ["t__nulls", { a: 1, b: "x", c: null, d: [1] }],
  ["t__capitals", { a: "x" }],
  ["t__draft4", { a: 2 }],
  ["t__filter", { "filter[id]": "x" }],
];
/** As some models write lists, objects and long numbers. */
const WRITTEN: Calls = [
  ["t__labels", { labels: '["bug","p1"]', filter: '{"open":true}' }],
  ["t__labels", { id: "9007199254740993" }],
];
const namesOf = (calls: Calls): string[] => calls.map(([name]) => name);

describe("what servers offer, in one session", () => {
  const told = tellTogether(
    {
      resources: [
        searchFor(`select:${RESOURCES.join(",")}`),
        asOneTurn([
          [RESOURCES[0] ?? "", {}],
          [RESOURCES[1] ?? "", { resourceId: "5" }],
        ]),
      ],
      filters: FILTERED.map((name) => searchFor(`select:${name}`)),
      choking: [searchFor(`select:${namesOf(CHOKING).join(",")}`), asOneTurn(CHOKING)],
      odd: [searchFor(`select:${namesOf(ODD).join(",")},${LONG}`), asOneTurn(ODD)],
      written: [searchFor("select:t__labels"), asOneTurn(WRITTEN)],
    },
    inSession(turn, {
      mcp: {
        mcpServers: {
          everything: SERVERS.everything,
          a: { ...shapes, excludeTools: ["a__sea*", "tree"] },
          b: { ...shapes, includeTools: ["b__search", "mea*"] },
          s: shapes,
          t: {
            ...fixtureServer("listed.mjs", { TOOLS: JSON.stringify(listedTools) }),
            excludeTools: [cut],
          },
        },
      },
    }),
  );

  test("resources and templates -> they are tools: found, loaded and called like other tools", async () => {
    const { requests, answers } = await told("resources");
    const declared = requests[1]?.tools.find(({ function: { name } }) =>
      name.endsWith("dynamic_text_resource"),
    );
    expect(declared?.function.parameters).toMatchObject({
      properties: { resourceId: { type: "string" } },
      required: ["resourceId"],
    });
    const [, document, dynamic] = answers;
    expect(document).toContain("architecture.md]");
    expect(dynamic).toContain("Resource 5: ");
  });

  test("excludeTools and includeTools with own names, prefixed names and patterns -> only the allowed tools are declared", async () => {
    const { requests } = await told("filters");
    const declared = requests.at(-1)?.toolNames.filter((name) => /^[ab]__/.test(name));
    expect(declared?.toSorted()).toEqual(["a__union", "b__measure", "b__search"]);
  });

  test("schemas that Pi or a provider would refuse -> declared as objects, called, and each repair logged once", async () => {
    const { log, requests, answers } = await told("choking");
    const union = requests[1]?.tools.find(({ function: { name } }) => name === "s__union")?.function
      .parameters;
    expect(union).toEqual({
      type: "object",
      properties: { id: { type: "string" }, name: { type: "string" } },
    });
    expect(answers.slice(1)).toEqual(answersTo(CHOKING));
    const repairs = log.match(/\bs: schemas repaired, .*/g);
    expect(repairs).toHaveLength(4);
    expect(new Set(repairs).size).toBe(4);
  });

  test("a list and an object that the model writes as JSON texts -> sent as what they are; a number that would become another one -> not sent", async () => {
    const { answers } = await told("written");
    expect(answers.slice(1)).toEqual([
      'labels {"labels":["bug","p1"],"filter":{"open":true}}',
      "t__labels was not called: in id the number 9007199254740993 would be sent as 9007199254740992.",
    ]);
  });

  test("invalid parts in schemas, a name that Anthropic refuses, a cut name in a rule -> repaired, named in the description, excluded", async () => {
    const { log, requests, answers } = await told("odd");
    const declared = new Map(requests[1]?.tools.map((tool) => [tool.function.name, tool.function]));
    expect([...declared.keys()].filter((name) => name.startsWith("t__")).toSorted()).toEqual(
      namesOf(ODD).toSorted(),
    );
    expect(declared.get("t__nulls")?.parameters).toEqual({
      type: "object",
      properties: { a: ANYTHING, b: ANYTHING, c: ANYTHING, d: { items: ANYTHING } },
    });
    expect(declared.get("t__draft4")?.parameters).toMatchObject({
      properties: { a: { exclusiveMinimum: 1 } },
    });
    expect(declared.get("t__filter")).toMatchObject({
      description: 'Does filter.\nAlso takes "filter[id]" (string, required).',
      parameters: { type: "object", properties: {} },
    });
    expect(answers.slice(1)).toEqual(answersTo(ODD));
    expect(log.match(/\bt: schemas repaired, .*/g)).toHaveLength(5);
  });
});

test("searches that load more tools than providers take -> the oldest are let go, and a call of one loads it again; a compaction lets go of more, and the server tells its instructions again", async () => {
  const s = fixtureServer("listed.mjs", { COUNT: "120", INSTRUCTIONS: "Begin with thing_0." });
  const pi = await turn({ mcp: { mcpServers: { s } }, settings: { compaction: { keepRecentTokens: 1 } } });
  const names = Array.from({ length: 120 }, (_, i) => `s__thing_${i}`);
  const search = (page: number) => searchFor(`select:${names.slice(page * 20, page * 20 + 20).join(",")}`);
  const declared = (): string[] =>
    pi.scripted.requests.at(-1)?.toolNames.filter((name) => name.startsWith("s__")) ?? [];
  await pi.prompt(...[0, 1, 2, 3, 4].map(search));
  expect(declared()).toHaveLength(100);
  expect(read(pi)[0]).toContain("> Begin with thing_0.");
  // What has been called last stays.
  await pi.prompt(call("s__thing_7", {}), search(5));
  expect(declared()).toEqual([names[7], ...names.slice(60, 69), ...names.slice(80)]);
  await pi.prompt(call("s__thing_3", {}), call("s__thing_3", { a: 1 }));
  expect(read(pi).slice(-2)).toEqual([
    expect.stringContaining("Tool s__thing_3 was not loaded. It is now"),
    'thing_3 {"a":1}',
  ]);
  expect(declared()).toHaveLength(51);

  const ends = pi.rpc.request({ type: "compact" }, PATIENCE_MS);
  await pi.prompt({ text: "a summary" }).catch(() => undefined);
  expect(await ends).toMatchObject({ success: true });
  await pi.prompt(call("s__thing_3", {}));
  expect(declared()).toHaveLength(50);
  expect(read(pi).at(-1)).toContain("> Begin with thing_0.");
});

const SCRIPT = `
const found = await searchTools("measure", { limit: 20 });
const space = await describeNamespace("s");
const { declaration } = (await describeTool("s__measure")) ?? {};
const measured = await tools.s__measure({});
return JSON.stringify({
  found: found.map(({ name }) => name).filter((name) => name === "s__measure"),
  known: ALL_TOOLS.filter(({ name }) => name.startsWith("s__")).length,
  namespace: space?.name, tools: space?.tools?.length,
  declared: JSON.stringify(await describeTool("s__measure")).includes("count"),
  measured,
});`;

const FAILING_SCRIPT = `
const answered = await tools.own__fail({ code: -32050, more: { a: 1 } });
const said = await tools.own__answer({ content: [{ type: "text", text: "bad" }], isError: true });
const unanswered = await tools.own__exit({}).catch(({ message }) => ({ message }));
return JSON.stringify({ answered, said, unanswered });`;

/** Returns the value that a script returned. */
const returned = (output = ""): unknown => {
  expect(output).toContain("Script completed");
  return JSON.parse(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1));
};

test("codemode and the built-in tool_search active, cold and warm -> a script finds MCP tools and gets the whole result, or a server's error with code and data; tool_search finds and loads an MCP tool, which answers", async () => {
  const own = fixtureServer("results.mjs", { SECRET: "s3cr3t-of-the-test" });
  const defaultTools = ["read", "bash", "edit", "write", "ToolSearch", "codemode", "tool_search"];
  const pi = await turn({ mcp: { mcpServers: { own, s: shapes } }, settings: { defaultTools } });
  for (const start of ["cold", "warm"]) {
    if (start === "warm") await pi.again();
    await pi.prompt(
      call("codemode", { code: SCRIPT }),
      call("codemode", { code: FAILING_SCRIPT }),
      call("tool_search", { query: "measure" }),
      call("s__measure", {}),
    );
    const { requests } = pi.scripted;
    expect(requests[0]?.toolNames).toEqual(expect.arrayContaining(["codemode", "tool_search"]));
    // Only tool_search loads a tool.
    expect(requests[2]?.toolNames).not.toContain("s__measure");
    expect(requests[3]?.toolNames, start).toContain("s__measure");
    const [found, failed, , loaded] = read(pi);
    expect(loaded).toMatch(/^measure \{\}/);
    expect(returned(found), start).toEqual({
      found: ["s__measure"],
      known: 6,
      namespace: "s",
      tools: 6,
      declared: true,
      measured: { content: [{ type: "text", text: "measure {}" }], structuredContent: { count: 3 } },
    });
    // A call without an answer from the server rejects.
    const message = "own rejected fail: no: [redacted]";
    expect(returned(failed), start).toEqual({
      answered: {
        content: [{ type: "text", text: message }],
        isError: true,
        error: { code: -32050, message, data: { code: -32050, more: { a: 1 } } },
      },
      said: { content: [{ type: "text", text: "bad" }], isError: true },
      unanswered: { message: expect.stringMatching(/^own\/exit got no answer: /) },
    });
  }
});

const one = (settings = {}) => ({ settings, mcpServers: { s: shapes } });
/** Begins the next session, which has the proxy tool. It knows the tools from the cache: a snapshot has the settings too. */
async function withProxy(pi: InTurn): Promise<void> {
  const files = { ".pi/agent/mcp.json": one({ proxyTool: true }) };
  await pi.again({ files, removed: [".pi/agent/mcp-snapshots"] });
  // `/mcp` answers when the configuration has been read; the first prompt waits for that only a limited time.
  await pi.status();
}

describe("a permission extension that reads the hints of tools", () => {
  const BLOCKED = /s__search was not approved/;

  test("a read-only tool, another tool and a search, then calls through the proxy tool -> the other tool is blocked, the rest runs", async () => {
    const pi = await turn({ mcp: one(), settings: withExtension(PERMISSION) });
    await pi.prompt(
      searchFor("select:s__measure,s__search"),
      call("s__measure", {}),
      call("s__search", { q: "x" }),
    );
    const [, measured, searched] = read(pi);
    expect(measured).toMatch(/^measure \{\}/);
    expect(searched).toMatch(BLOCKED);

    await withProxy(pi);
    const search = call("mcp", { tool: "s__search", args: { q: "x" } });
    await pi.prompt(call("mcp", { tool: "s__measure" }), search);
    expect(read(pi)).toEqual([expect.stringMatching(/^measure \{\}/), expect.stringMatching(BLOCKED)]);
  });
});

describe("a tool that --tools leaves out", () => {
  const limited = inTurn({ args: ["--tools", "read,ToolSearch,mcp"] });

  test("a search that finds it -> the answer says so, and the tool is not loaded; a call through the proxy tool -> Pi does not allow the tool", async () => {
    const pi = await limited({ mcp: one() });
    await pi.prompt(searchFor("measure"));
    const refused = /Found, but Pi does not allow them in this session \(--tools\): .*s__measure/;
    expect(read(pi)[0]).toMatch(refused);
    expect(pi.scripted.requests[1]?.toolNames).toEqual(["read", "ToolSearch"]);

    await withProxy(pi);
    await pi.prompt(call("mcp", { tool: "s__measure" }));
    expect(read(pi)[0]).toMatch(/^Pi does not allow s__measure in this session/);
  });
});
