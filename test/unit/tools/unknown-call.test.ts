import { describe, expect, it, test } from "vitest";
import type { Catalog, CatalogTool } from "../../../src/catalog/catalog.ts";
import type { FinishedMessage } from "../../../src/pi/api.ts";
import type { WireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerStatus } from "../../../src/shared/protocol/session.ts";
import { explainFailed } from "../../../src/tools/unknown-call.ts";
import { makeCatalog } from "../make-catalog.ts";

const CATALOG = makeCatalog([
  { name: "fs", tools: [{ tool: "read_file", description: "Reads." }, { tool: "search" }] },
  { name: "web", tools: [{ tool: "search" }] },
]);

const refused = (toolName: string): FinishedMessage => ({
  role: "toolResult",
  toolName,
  isError: true,
  content: [{ type: "text", text: `Tool ${toolName} not found` }],
});

const status = (name: string, rest: Partial<ServerStatus>): ServerStatus => ({
  name,
  state: "connected",
  lifecycle: "lazy",
  direct: false,
  transport: "stdio",
  source: "/mcp.json",
  toolCount: 0,
  resourceCount: 0,
  toolsKnown: true,
  ...rest,
});

interface Host {
  catalog?: Catalog;
  servers?: ServerStatus[];
  allowed?: boolean;
  /** Null: the model does not have it. */
  searchTool?: string | null;
  /** The tool that was taken back. */
  withdrawn?: CatalogTool;
  why?: Record<string, WireError>;
}

async function explain(
  message: FinishedMessage,
  options: Host = {},
): Promise<{ text: string | undefined; loaded: string[]; told?: string[]; details?: unknown }> {
  const loaded: string[] = [];
  const told: string[] = [];
  const explained = await explainFailed(message, {
    catalog: () => options.catalog ?? CATALOG,
    servers: () => options.servers ?? [],
    withdrawn: (name) => (options.withdrawn?.name === name ? options.withdrawn : undefined),
    whyMissing: async (name) => options.why?.[name],
    searchTool: () => (options.searchTool === undefined ? "ToolSearch" : (options.searchTool ?? undefined)),
    tell: (text) => told.push(text),
    activate: (tools: readonly CatalogTool[]) => {
      if (options.allowed === false) return { active: [], refused: [...tools] };
      loaded.push(...tools.map((tool) => tool.name));
      return { active: [...tools], refused: [] };
    },
  });
  const content = explained?.content as { text: string }[] | undefined;
  const { details } = (explained ?? {}) as { details?: unknown };
  return {
    text: content?.map(({ text }) => text).join("\n"),
    loaded,
    ...(told.length > 0 ? { told } : {}),
    ...(details === undefined ? {} : { details }),
  };
}

describe("a call of a tool that is not declared", () => {
  it.each(["fs__read_file", "mcp__fs__read_file", "fs__readFile", "read_file"])(
    "%s, known but not loaded -> loaded, with its signature",
    async (name) => {
      const { text, loaded, told } = await explain(refused(name));
      // Pi's row says "not found", which is no longer so.
      expect(told).toEqual([
        `fs__read_file: loaded now. The model called ${name} before that, and is told to call it again.`,
      ]);
      expect(loaded).toEqual(["fs__read_file"]);
      expect(text).toMatch(/was not loaded\. It is now: .*\n- fs__read_file\(\) - Reads\.$/);
    },
  );

  test("a name that several servers have -> all of them loaded", async () => {
    expect((await explain(refused("search"))).loaded).toEqual(["fs__search", "web__search"]);
  });

  test("what is loaded stands in the result, as that of a search does: it counts as used there", async () => {
    expect((await explain(refused("search"))).details).toEqual({
      loaded: ["fs__search", "web__search"],
      owners: {
        fs__search: { server: "fs", tool: "search" },
        web__search: { server: "web", tool: "search" },
      },
    });
    expect((await explain(refused("search"), { allowed: false })).details).toBeUndefined();
    expect((await explain(refused("search"), { searchTool: "mcp" })).details).toBeUndefined();
  });

  test("a name that more servers have than a search loads -> no more are loaded, and the answer names those", async () => {
    const most = LIMITS.searchResultsMost;
    const servers = Array.from({ length: most + 5 }, (_, at) => ({
      name: `s${at}`,
      tools: [{ tool: "go" }],
    }));
    const { text, loaded } = await explain(refused("go"), { catalog: makeCatalog(servers) });
    expect(loaded).toHaveLength(most);
    expect(text?.match(/^- s\d+__go/gm)).toHaveLength(most);
  });

  test("with the proxy tool -> nothing is loaded, and the answer shows the call that works", async () => {
    const { text, loaded } = await explain(refused("fs__readFile"), { searchTool: "mcp" });
    expect(loaded).toEqual([]);
    expect(text).toBe(
      'Tool fs__readFile is called through mcp with tool: "fs__read_file" and args:\n- fs__read_file() - Reads.',
    );
  });

  it.each([
    ["that has ToolSearch", "ToolSearch", true],
    ["without it", null, false],
  ])(
    "a misspelled name by a model %s -> the nearest names, nothing is loaded; ToolSearch is named: %s",
    async (_who, searchTool, named) => {
      const { text, loaded } = await explain(refused("fs__raed_file"), { searchTool });
      expect(text).toMatch(/^Tool fs__raed_file not found\. Nearest: fs__read_file/);
      expect(text?.includes("ToolSearch finds others.")).toBe(named);
      expect(loaded).toEqual([]);
    },
  );

  test("a tool that Pi does not allow -> the answer says so", async () => {
    expect((await explain(refused("fs__read_file"), { allowed: false })).text).toBe(
      "Tool fs__read_file not found.\nPi does not allow fs__read_file in this session (--tools).",
    );
  });

  it.each<[string, Partial<ServerStatus>, RegExp]>([
    [
      "connecting",
      { state: "connecting", toolsKnown: false },
      /Server slow is connecting: its tools are not known yet/,
    ],
    [
      "failed",
      { state: "failed", error: { code: "spawn_failed", message: "no such command.", remedy: "Fix it." } },
      /Server slow is not available: no such command\. Fix it\.$/,
    ],
  ])("a tool of a server that is %s -> the server's state", async (_name, rest, expected) => {
    expect((await explain(refused("slow__go"), { servers: [status("slow", rest)] })).text).toMatch(expected);
  });

  const error: WireError = {
    code: "tool_excluded",
    message: "fs offers drop, but the configuration excludes it.",
    remedy: "Only the user can allow it.",
    data: { server: "fs" },
  };
  const drop = { ...(CATALOG.tools[0] as CatalogTool), name: "fs__drop", tool: "drop" };
  const why = { fs__drop: error };

  test("the former name of a renamed tool -> the tool under its new name", async () => {
    const read = CATALOG.get("fs__read_file") as CatalogTool;
    const { text, loaded } = await explain(refused("read_file_"), {
      withdrawn: { ...read, name: "read_file_" },
    });
    expect(loaded).toEqual(["fs__read_file"]);
    expect(text).toMatch(/It is now: call it by this name/);
  });

  it.each<[string, Host]>([
    ["never had", { why }],
    ["that was withdrawn", { why, withdrawn: drop }],
    ["that was withdrawn under a name with a hash", { why, withdrawn: { ...drop, name: "fs__dro_abc123" } }],
  ])("a tool %s, and that the configuration excludes -> why, with its code", async (_name, host) => {
    const name = host.withdrawn?.name ?? "fs__drop";
    expect(await explain(refused(name), host)).toEqual({
      text: `Tool ${name} not found: ${error.message} ${error.remedy}`,
      loaded: [],
      details: { server: "fs", code: "tool_excluded" },
    });
  });

  it.each<[string, CatalogTool, string, string]>([
    ["no longer offered", drop, "the server fs no longer offers drop.", "unknown_tool"],
    [
      "of a removed server",
      { ...drop, name: "old__drop", server: { ...drop.server, name: "old" } },
      "its server old was removed from the configuration.",
      "server_removed",
    ],
  ])("a tool that was taken back, %s -> says so, with its code", async (_name, withdrawn, words, code) => {
    expect(await explain(refused(withdrawn.name), { withdrawn })).toMatchObject({
      text: `Tool ${withdrawn.name} not found: ${words}`,
      details: { server: withdrawn.server.name, code },
    });
  });

  it.each<[string, FinishedMessage]>([
    ["a name that has nothing to do with MCP", refused("zzqqy")],
    [
      "another error of the same tool",
      { ...refused("fs__read_file"), content: [{ type: "text", text: "no" }] },
    ],
    ["a result that is not an error", { ...refused("fs__read_file"), isError: false }],
    ["a message of the user", { role: "user", content: "Tool fs__read_file not found" }],
    ["no content", { role: "toolResult", toolName: "fs__read_file", isError: true }],
  ])("%s -> left as it is", async (_name, message) => {
    expect(await explain(message)).toEqual({ text: undefined, loaded: [] });
  });
});

const catalog = makeCatalog([{ name: "s", tools: [{ tool: "go" }] }]);
const REFUSED = 'Validation failed for tool "s__go":\n  - a: missing';
const message = (text: string, rest: Partial<FinishedMessage> = {}): FinishedMessage => ({
  role: "toolResult",
  toolName: "s__go",
  isError: true,
  content: [{ type: "text", text }],
  ...rest,
});

it("refused arguments of our tool -> the expected parameters after Pi's words", async () => {
  const { text } = await explain(message(REFUSED), { catalog });
  expect(text).toBe(`${REFUSED}\nExpected parameters: s__go()`);
});

it.each<[string, FinishedMessage]>([
  ["another tool's", message('Validation failed for tool "bash": x', { toolName: "bash" })],
  ["a tool that no catalog knows", message('Validation failed for tool "s__x": x', { toolName: "s__x" })],
  ["a server's own words", message("Validation failed: x")],
  ["a result", message(REFUSED, { isError: false })],
  ["what a user wrote", message(REFUSED, { role: "user" })],
  ["content that is not a list", message(REFUSED, { content: REFUSED })],
  ["no content", message(REFUSED, { content: [] })],
])("%s -> left as it is", async (_name, given) => {
  expect(await explain(given, { catalog })).toEqual({ text: undefined, loaded: [] });
});

const WHY = { s__go: { code: "server_disabled", message: "s is off.", remedy: "/mcp on s." } } as const;
const failed = (name: string): string => `Script error:\nTypeError: tools.${name} does not exist. ALL_TOOLS`;
const inScript = { toolName: "codemode" };

it("a script that wants a tool which is withheld -> the reason after what it printed", async () => {
  const { text } = await explain(message(failed("s__go"), inScript), { why: WHY });
  expect(text).toBe(`${failed("s__go")}\ns__go: s is off. /mcp on s.`);
});

it.each<[string, FinishedMessage]>([
  ["a tool that nothing withholds", message(failed("s__other"), inScript)],
  ["another tool's words", message(failed("s__go"), { toolName: "bash" })],
  ["a script that ended well", message(failed("s__go"), { ...inScript, isError: false })],
])("a script: %s -> left as it is", async (_name, given) => {
  expect(await explain(given, { why: WHY })).toEqual({ text: undefined, loaded: [] });
});
