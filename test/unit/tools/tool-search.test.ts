/** Owns: what ToolSearch tells the model, over a host in memory. */
import { describe, expect, it, test } from "vitest";
import type { Catalog, CatalogTool } from "../../../src/catalog/catalog.ts";
import type { PiContext } from "../../../src/host.ts";
import { ThreadsError } from "../../../src/protocol/errors.ts";
import type { ServerStatus } from "../../../src/protocol/types.ts";
import { createToolSearch, toolSearchDescription } from "../../../src/tools/tool-search.ts";
import { makeCatalog } from "../make-catalog.ts";

const CATALOG = makeCatalog([
  {
    name: "fs",
    tools: [
      {
        tool: "read_file",
        description: "Reads a file. Nothing else.",
        schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
      },
      { tool: "write_file", description: "Writes a file." },
      { tool: "list", description: "Lists a folder." },
    ],
  },
  { name: "many", tools: Array.from({ length: 8 }, (_, i) => ({ tool: `thing${i}` })) },
]);

const status = (name: string, rest: Partial<ServerStatus> = {}): ServerStatus => ({
  name,
  state: "connected",
  lifecycle: "lazy",
  transport: "stdio",
  source: "/mcp.json",
  toolCount: 0,
  toolsKnown: true,
  direct: false,
  ...rest,
});

interface Host {
  catalog?: Catalog;
  pending?: string[];
  servers?: ServerStatus[];
  refuse?: (tool: CatalogTool) => boolean;
}

async function ask(
  query: unknown,
  host: Host = {},
): Promise<{ text: string; loaded: string[]; asked: string[][]; logged: string[] }> {
  const asked: string[][] = [];
  const logged: string[] = [];
  const tool = createToolSearch("d", {
    settle: async () => host.pending ?? [],
    catalog: () => host.catalog ?? CATALOG,
    servers: () => host.servers ?? [status("fs"), status("many")],
    log: (message) => logged.push(message),
    activate: (tools) => {
      asked.push(tools.map(({ name }) => name));
      const refuse = host.refuse ?? (() => false);
      return { active: tools.filter((t) => !refuse(t)), refused: tools.filter(refuse) };
    },
  });
  const result = await tool.execute("c", { query }, undefined, undefined, {} as PiContext);
  const [content] = result.content;
  const text = content?.type === "text" ? content.text : "";
  return { text, loaded: (result.details as { loaded: string[] }).loaded, asked, logged };
}

describe("ToolSearch: keywords", () => {
  test("a match -> the tools are loaded, best first, each with signature and first sentence", async () => {
    const { text, loaded } = await ask("read file");
    expect(loaded).toEqual(["fs__read_file", "fs__write_file"]);
    expect(text).toBe(
      [
        "Loaded. Call them by name from your next message on:",
        "- fs__read_file(path: string) - Reads a file.",
        "- fs__write_file() - Writes a file.",
      ].join("\n"),
    );
  });

  test("more matches than the limit -> five", async () => {
    expect((await ask("thing")).loaded).toEqual([
      "many__thing0",
      "many__thing1",
      "many__thing2",
      "many__thing3",
      "many__thing4",
    ]);
  });

  test("one term without a match -> the others count and it is named", async () => {
    const { text, loaded } = await ask("list zebra");
    expect(loaded).toEqual(["fs__list"]);
    expect(text).toMatch(/\nNo tool matches: zebra$/);
  });

  test("no match -> says so and loads nothing", async () => {
    const { text, loaded } = await ask("zebra");
    expect(loaded).toEqual([]);
    expect(text).toBe("No tools found.\nNo tool matches: zebra");
  });
});

describe("ToolSearch: select", () => {
  test("exact names -> these, in the order asked", async () => {
    expect((await ask("select:many__thing7,fs__list")).loaded).toEqual(["many__thing7", "fs__list"]);
  });

  test("unknown names among known -> the known are loaded, the unknown named", async () => {
    const { text, loaded } = await ask("select:fs__list,fs__nope,other");
    expect(loaded).toEqual(["fs__list"]);
    expect(text).toMatch(/\nNo such tool: fs__nope, other$/);
  });

  it.each(["constructor", "__proto__", "fs__LIST"])("select:%s -> no such tool", async (name) => {
    expect(await ask(`select:${name}`)).toMatchObject({
      text: `No tools found.\nNo such tool: ${name}`,
      loaded: [],
    });
  });

  test("more names than the limit -> every name is in the answer, loaded or left out", async () => {
    const names = Array.from({ length: 7 }, (_, i) => `many__thing${i}`);
    const { text } = await ask(`select:${names.join(",")}`);
    for (const name of names) expect(text).toContain(name);
  });
});

describe("ToolSearch: queries that ask nothing", () => {
  it.each(["", "  ", "select:", undefined, 5, null])("query %j -> a hint, nothing loaded", async (query) => {
    const { text, loaded, asked } = await ask(query);
    expect(text).toBe("The query is empty. Write keywords, or select:name1,name2.");
    expect(loaded).toEqual([]);
    expect(asked).toEqual([]);
  });
});

describe("ToolSearch: what it says of servers", () => {
  test("servers still connecting -> named, after what was found", async () => {
    const { text, loaded } = await ask("list", { pending: ["slow", "slower"] });
    expect(loaded).toEqual(["fs__list"]);
    expect(text).toMatch(/\nStill connecting, search again later: slow, slower$/);
  });

  test("a failed server whose tools are unknown -> named with its reason and remedy", async () => {
    const error = { code: "spawn_failed" as const, message: "bad: not found.", remedy: "Check command." };
    const servers = [status("bad", { state: "failed", toolsKnown: false, error }), status("fs")];
    expect((await ask("zebra", { servers })).text.split("\n").at(-1)).toBe(
      "Not available: bad: not found. Check command.",
    );
  });

  test("a failed server whose tools are known -> not named", async () => {
    const error = { code: "server_died" as const, message: "gone" };
    const servers = [status("fs", { state: "failed", error })];
    expect((await ask("list", { servers })).text).not.toContain("Not available");
  });
});

test("ToolSearch: tools that Pi refuses -> named as refused, not as loaded", async () => {
  const { text, loaded } = await ask("select:fs__list,fs__read_file", {
    refuse: (tool) => tool.tool === "list",
  });
  expect(loaded).toEqual(["fs__read_file"]);
  expect(text).toContain("Found, but Pi does not allow them in this session (--tools): fs__list");
  expect(text).not.toContain("- fs__list(");
});

test("ToolSearch: a worker that does not answer -> still finds what is known, and says what is wrong", async () => {
  const tool = createToolSearch("d", {
    settle: () => Promise.reject(new ThreadsError("runtime_restarted", "It ended.", { remedy: "/reload." })),
    catalog: () => CATALOG,
    servers: () => [],
    activate: (tools) => ({ active: [...tools], refused: [] }),
    log: () => undefined,
  });
  const result = await tool.execute("c", { query: "list" }, undefined, undefined, {} as PiContext);
  expect(result.details).toEqual({ loaded: ["fs__list"] });
  expect(JSON.stringify(result.content)).toMatch(/fs__list.*It ended\. \/reload\./);
});

test("ToolSearch: a search -> one line for the log, with how much was scored", async () => {
  const { logged } = await ask("read file");
  expect(logged).toEqual([expect.stringMatching(/^scored 11 tools for "read file" in \d+\.\d\d ms$/)]);
});

test("ToolSearch: an empty catalog -> no tools found", async () => {
  expect(await ask("read", { catalog: makeCatalog([]) })).toMatchObject({ loaded: [], asked: [[]] });
});

test("ToolSearch: the call's signal -> handed to the wait for servers", async () => {
  const { signal } = new AbortController();
  let seen: unknown;
  const tool = createToolSearch("d", {
    settle: async (given) => {
      seen = given;
      return [];
    },
    catalog: () => CATALOG,
    servers: () => [],
    activate: () => ({ active: [], refused: [] }),
    log: () => undefined,
  });
  await tool.execute("c", { query: "x" }, signal, undefined, {} as PiContext);
  expect(seen).toBe(signal);
});

describe("toolSearchDescription", () => {
  test("no servers -> no list", () => {
    expect(toolSearchDescription([])).not.toContain("Servers");
  });

  test("servers -> a line each in the order given, with the first sentence of the description", () => {
    const text = toolSearchDescription([{ name: "z", description: "Does z. More." }, { name: "a" }]);
    expect(text).toMatch(/\nServers:\n- z: Does z\.\n- a$/);
  });

  it.each([
    [50, "- s49"],
    [51, "- and 1 more"],
    [500, "- and 450 more"],
  ])("%i servers -> ends with %j", (count, last) => {
    const lines = toolSearchDescription(Array.from({ length: count }, (_, i) => ({ name: `s${i}` }))).split(
      "\n",
    );
    expect(lines.at(-1)).toBe(last);
    expect(lines.length).toBeLessThanOrEqual(53);
  });

  test("the same servers twice -> the same bytes", () => {
    const servers = [{ name: "a", description: "A." }, { name: "b" }];
    expect(toolSearchDescription(servers)).toBe(toolSearchDescription([...servers]));
  });
});
