/**
 * Owns: tests of ways to find tools in the real Pi: ToolSearch, calls of tools that are not loaded, the proxy tool.
 * tools.test.ts tests codemode.
 */
import { describe, expect, test } from "vitest";
import { type ModelRequest, type ModelTurn, toolResultTexts } from "../support/model.ts";
import { inTurn } from "./in-turn.ts";
import { type Opened, PATIENCE_MS } from "./rpc-support.ts";
import { inSession, tellTogether } from "./stories.ts";
import { call, fixtureServer, readLog, searchFor } from "./support.ts";

const LONG_NAME = `long_${"x".repeat(195)}`;

interface ListedTool {
  name: string;
  description?: string;
  inputSchema?: Record<string, unknown>;
}

const listed = (tools: ListedTool[], count = 0): Record<string, unknown> =>
  fixtureServer("listed.mjs", { TOOLS: JSON.stringify(tools), COUNT: String(count) });

const READ: ListedTool = {
  name: "read_file",
  description: "Reads a file from disk. Nothing else.",
  inputSchema: {
    type: "object",
    properties: {
      path: { type: "string", description: "Where it lies." },
      mode: { type: "string", enum: ["text", "binary"], default: "text" },
    },
    required: ["path"],
  },
};

interface Run {
  requests: readonly ModelRequest[];
  /** The answers of the tool calls, in order. */
  answers: string[];
}

const turn = inTurn();

/** Sends the only prompt of a session. */
async function run({ prompt, scripted }: Opened, ...turns: ModelTurn[]): Promise<Run> {
  await prompt(...turns);
  const requests = [...scripted.requests];
  const last = requests.at(-1);
  return { requests, answers: last ? toolResultTexts(last) : [] };
}

const declared = (request: ModelRequest | undefined, name: string) =>
  request?.tools.find((tool) => tool.function.name === name)?.function;

describe("in one session", () => {
  const told = tellTogether(
    {
      // This story comes first: its tools must not be loaded yet.
      undeclared: [
        searchFor("select:thing_0"),
        call("mcp__fs__read-file", { path: "a" }),
        call("fs__read_file", { path: "a" }),
      ],
      slip: [call("fs__raed_file", {}), call("zzqqy", {})],
      sameName: [
        searchFor("select:read_file"),
        call("ToolSearch", { query: "read file", server: "beta" }),
        call("beta__read_file", { path: "b" }),
      ],
      longName: [
        searchFor(`select:${LONG_NAME}`),
        (request: ModelRequest) => {
          const name = request.toolNames.find((candidate) => candidate.startsWith("s__long_")) ?? "";
          return call(name, { a: 1 });
        },
      ],
      chinese: [searchFor("天气预报"), searchFor("weather forecast")],
      several: [
        {
          toolCalls: [0, 1, 2, 3, 4, 5].map((i) => ({
            name: "ToolSearch",
            args: { query: `select:thing_${i * 3},thing_${i * 3 + 1}` },
          })),
        },
      ],
      failed: [searchFor("read file zebra"), searchFor("!?")],
    },
    inSession(turn, {
      mcp: {
        mcpServers: {
          alpha: listed([READ]),
          beta: listed([READ]),
          bad: { command: "/nonexistent/command" },
          cn: listed([{ name: "tianqi", description: "查询城市的天气预报" }, READ]),
          fs: listed([READ]),
          many: listed([], 30),
          s: listed([{ name: LONG_NAME }]),
        },
      },
    }),
  );

  test("a call of a known tool that is not declared -> the tool is loaded, the answer has its signature, the next call works", async () => {
    const { answers, requests } = await told("undeclared");
    expect(requests[1]?.toolNames).not.toContain("fs__read_file");
    expect(answers[1]).toMatch(
      /^Tool mcp__fs__read-file was not loaded\. It is now: .*\n- fs__read_file\(path: string/,
    );
    expect(requests[2]?.toolNames).toContain("fs__read_file");
    expect(answers[2]).toBe('read_file {"path":"a"}');
  });

  test("a misspelt call -> the nearest names; a call with a name that resembles no tool -> Pi's own words", async () => {
    const { answers } = await told("slip");
    expect(answers[0]).toMatch(/^Tool fs__raed_file not found\. Nearest: fs__read_file/);
    expect(answers[1]).toBe("Tool zzqqy not found");
  });

  test("tools of one name on several servers -> all are found, and the server parameter selects one", async () => {
    const { answers, requests } = await told("sameName");
    expect(requests[1]?.toolNames).toEqual(expect.arrayContaining(["alpha__read_file", "beta__read_file"]));
    expect(answers[1]).toContain("beta__read_file(");
    expect(answers[1]).not.toContain("alpha__read_file(");
    expect(answers[2]).toBe('read_file {"path":"b"}');
  });

  test("a tool name of 200 characters -> the tool is found by the whole name, declared with at most 64 characters, called on the server by the whole name", async () => {
    const { answers, requests } = await told("longName");
    const name = requests[1]?.toolNames.find((candidate) => candidate.startsWith("s__long_"));
    expect(name?.length).toBeLessThanOrEqual(64);
    expect(answers[1]).toBe(`${LONG_NAME} {"a":1}`);
  });

  test("a Chinese query and an English query -> both find a Chinese tool, the English query by translation", async () => {
    const { answers } = await told("chinese");
    expect(answers).toHaveLength(2);
    for (const answer of answers) expect(answer).toContain("- cn__tianqi(");
  });

  test("several searches in one message -> the tools of each search are loaded", async () => {
    const { requests, answers } = await told("several");
    expect(answers).toHaveLength(6);
    const wanted = [0, 1, 2, 3, 4, 5].flatMap((i) => [`many__thing_${i * 3}`, `many__thing_${i * 3 + 1}`]);
    expect(requests[1]?.toolNames).toEqual(expect.arrayContaining(wanted));
  });

  test("a failed server, an unknown word, a query without words -> the answer names the reason, the word and the empty query; other tools are found", async () => {
    const { answers } = await told("failed");
    expect(answers[0]).toContain("- fs__read_file(");
    expect(answers[0]).toContain("No tool matches: zebra");
    expect(answers[0]).toMatch(/Not available: bad: /);
    expect(answers[1]).toMatch(/^The query is empty\./);
  });
});

test("more tools than Pi is told of at the start -> the right tool is found, loaded and called, from the list and, in the next session, from the snapshot; a later search changes no byte of the earlier declarations; a resumed session has the tool from its first request on", async () => {
  const pi = await turn({ mcp: { mcpServers: { many: listed([READ], 2_100) } } });
  let sessionFile = "";
  for (const start of ["cold", "warm"]) {
    const before = start === "warm" ? (await readLog(pi.at)).length : 0;
    if (start === "warm") await pi.again();
    const { answers, requests } = await run(
      pi,
      searchFor("read a file from disk"),
      call("many__read_file", { path: "a" }),
      searchFor("select:thing_3"),
      call("many__thing_7", {}),
      call("many__thing_7", { b: 2 }),
    );
    expect(answers[0]).toContain(
      'many__read_file(path: string, mode?: "text" | "binary" = "text") - Reads a file from disk.',
    );
    expect(answers[1]).toBe('read_file {"path":"a"}');
    expect(answers[3]).toContain("Tool many__thing_7 was not loaded. It is now");
    expect(answers[4]).toBe('thing_7 {"b":2}');
    expect(requests[0]?.toolNames).toEqual(["read", "bash", "edit", "write", "ToolSearch"]);
    const earlier = requests[1]?.tools.map((tool) => JSON.stringify(tool)) ?? [];
    expect(requests[3]?.tools.map((tool) => JSON.stringify(tool)).slice(0, earlier.length)).toEqual(earlier);
    expect(requests[3]?.toolNames).toContain("many__thing_3");
    if (start === "cold") {
      const state = await pi.rpc.request({ type: "get_state" }, PATIENCE_MS);
      ({ sessionFile } = state.data as { sessionFile: string });
      continue;
    }
    expect(declared(requests[0], "ToolSearch")?.description).toMatch(/- many \[thing_0, .*\d+ more\]$/);
    expect((await readLog(pi.at)).slice(before)).toContain(
      "registered 2101 tools of 1 servers from the snapshot",
    );
  }

  await pi.again({}, sessionFile);
  const resumed = await run(pi, call("many__thing_3", { c: 3 }));
  expect(resumed.requests[0]?.toolNames.filter((name) => name.startsWith("many__"))).toEqual(
    expect.arrayContaining(["many__read_file", "many__thing_3", "many__thing_7"]),
  );
  expect(resumed.answers.at(-1)).toBe('thing_3 {"c":3}');
});

test('settings: search "weighted" -> the 10/5/4/3 weights rank; catalog "servers" -> the next start\'s description lists servers only', {
  tags: "thorough",
}, async () => {
  const tools = [
    { name: "alpha", description: "Reading of one file." },
    { name: "file_other", description: "Something else." },
  ];
  const settings = { search: "weighted", catalog: "servers" };
  const pi = await turn({ mcp: { settings, mcpServers: { s: listed(tools) } } });
  const { answers } = await run(pi, searchFor("file"));
  // A part of the name counts 10 and a word of the description counts 4, which is less than half.
  expect(answers[0]).toMatch(/- s__file_other\(\).*\nLess likely.*: s__alpha$/);
  // test/unit/shared/text/search-tool.test.ts tests the catalog "off".
  await pi.again();
  const { requests } = await run(pi, { text: "ok" });
  expect(declared(requests[0], "ToolSearch")?.description).toMatch(/\nServers \(.+\):\n- s$/);
});

describe("the proxy tool", () => {
  const servers = {
    fs: listed([READ, { name: "write_file", description: "Writes a file." }]),
    bad: { command: "/nonexistent/command" },
  };
  const mcp = (args: Record<string, unknown>) => call("mcp", args);

  const MODES: [string, Record<string, unknown>, RegExp][] = [
    ["tool", { tool: "fs__read_file", args: { path: "a" } }, /^read_file \{"path":"a"\}$/],
    ["tool, args as JSON", { tool: "mcp__fs__readFile", args: '{"path":"a"}' }, /^read_file \{"path":"a"\}$/],
    [
      "tool wins over all others",
      { tool: "read_file", args: { path: "b" }, search: "x", describe: "y" },
      /^read_file \{"path":"b"\}$/,
    ],
    [
      "tool, wrong arguments",
      { tool: "fs__read_file", args: {} },
      /^Validation failed(.|\n)*Expected parameters: fs__read_file\(path: string/,
    ],
    ["tool, broken args", { tool: "fs__read_file", args: "{" }, /^args is not valid JSON: /],
    ["tool, a slip", { tool: "fs__raed_file" }, /^No tool named fs__raed_file\.\nNearest: fs__read_file/],
    [
      "tool of a failed server",
      { tool: "bad__go" },
      /^No tool named bad__go\.(.|\n)*Server bad is not available: /,
    ],
    ["connect", { connect: "fs" }, /^fs: connected, 2 tools$/],
    ["connect, failing", { connect: "bad" }, /^bad: failed, tools unknown: /],
    ["connect, unknown", { connect: "slack" }, /^No server named slack\. Servers: fs, bad\.$/],
    [
      "describe",
      { describe: "fs__read_file" },
      /^fs__read_file\nServer: fs\nReads a file from disk\. Nothing else\.\nParameters:\n {2}path \(string\) \*required\* - Where it lies\.\n {2}mode \("text" \| "binary"\) \[default: "text"\]$/,
    ],
    ["search", { search: "write text" }, /^fs__write_file - Writes a file\.\n {2}no parameters/],
    [
      "search without schemas",
      { search: "read file", includeSchemas: false },
      /^fs__read_file - Reads a file from disk\.\n(fs__write|Not)/,
    ],
    ["search, regex", { search: "^fs__(read|list)_", regex: true }, /^fs__read_file - [^\n]*\n {2}path/],
    ["search, regex that backtracks", { search: "(a+)+$", regex: true }, /^No tools found\./],
    [
      "search, regex refused",
      { search: "^fs__(read", regex: true },
      /^The pattern cannot be used: Unterminated group at character 6: "\^fs__\("\.$/,
    ],
    ["server", { server: "fs" }, /^fs: 2 tools\nfs__read_file - .*\nfs__write_file - Writes a file\.$/],
  ];
  const STATUS =
    /^MCP: 1\/2 servers, 2 tools\nfs: connected, 2 tools\nbad: (?:failed|connecting), tools unknown/;

  test("without a snapshot -> declared when the settings are known, in place of ToolSearch; then one call of each mode in the next session works", {
    tags: "thorough",
  }, async () => {
    const pi = await turn({ mcp: { mcpServers: servers, settings: { proxyTool: true } } });
    // `/mcp` answers when the configuration has been read; the first prompt waits for that only a limited time.
    await pi.status();
    const cold = await run(pi, mcp({ search: "read a file" }));
    expect(cold.requests[0]?.toolNames).toEqual(["read", "bash", "edit", "write", "mcp"]);
    expect(cold.answers[0]).toMatch(/^fs__read_file - /);

    await pi.again();
    const each = { toolCalls: MODES.map(([, args]) => ({ name: "mcp", args })) };
    const { answers, requests } = await run(pi, each, mcp({}));
    expect(requests[0]?.toolNames).toEqual(["read", "bash", "edit", "write", "mcp"]);
    expect(answers.at(-1)).toMatch(STATUS);
    MODES.forEach(([name, , expected], i) => {
      expect(answers[i], name).toMatch(expected);
    });
  });
});
