import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { nameTools, shortHash, type ToolPrefix } from "../../../../../../src/shared/naming.ts";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import { directRule } from "../../../../../../src/tools/book.ts";
import {
  type Approve,
  asksNothing,
  asRules,
  canBeAllowed,
  exposureOf,
  isUndecided,
  type JudgedTool,
  keywordsFor,
  mayBeDirect,
  namesInRules,
  type SettingsApproval,
  toExposure,
  verdictOn,
} from "../../../../../../workers/connection/config/entry/exposure.ts";
import { nearestKey } from "../../../../../../workers/connection/config/entry/mistakes.ts";
import { matchesPattern } from "../../../../../../workers/connection/config/entry/patterns.ts";
import { loadConfig } from "../../../../../../workers/connection/config/merge/merge.ts";
import { definition, facts, put, temporaryFolder } from "../support.ts";

test.each<[string, object, boolean | string[] | undefined, boolean]>([
  ["no rule", {}, undefined, true],
  ["rules that let it in", { includeTools: ["get"] }, undefined, true],
  ["a rule for another tool", { toolExposure: { set: "direct" } }, undefined, true],
  ["directTools of the entry", { directTools: false }, undefined, false],
  ["directTools that name others", { directTools: ["set"] }, undefined, false],
  ["toolExposure", { toolExposure: { "g*": "deferred" } }, undefined, false],
  ["exposure", { exposure: "deferred" }, undefined, false],
  ["an exclusion", { excludeTools: ["get"] }, undefined, false],
  ["directTools of the settings", {}, false, false],
  ["directTools of the settings that name others", {}, ["set"], false],
])("%s -> undecided: %s", (_case, entry, settings, is) => {
  expect(isUndecided("get", definition("s", { command: "c", ...entry }), settings)).toBe(is);
});

test("a project's file that takes the user's rule away -> the user has decided", () => {
  const own = definition("s", { command: "c", directTools: false });
  expect(isUndecided("get", { ...definition("s", { command: "c" }), userRules: own })).toBe(false);
});

test.each([
  ["direct", "direct"],
  ["deferred", "search"],
  ["codemode", "search"],
  ["codemode-deferred", "search"],
  ["hidden", "hidden"],
] as const)("Pi's exposure %s -> %s", (written, ours) => {
  expect(toExposure(written)).toBe(ours);
});

test.each([
  ["get_*", "get_issue", true],
  ["get_*", "forget_x", false],
  ["*", "", true],
  ["*_issue", "get_issue", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["aa*aa", "aaa", false],
  ["exact", "exact", true],
  ["get.*", "get_x", false],
])("pattern %s on %s -> %s", (pattern, tool, fits) => {
  expect(matchesPattern(pattern, tool)).toBe(fits);
});

test("a hostile pattern is matched in linear time", () => {
  expect(matchesPattern(`${"*a".repeat(5_000)}*b`, "a".repeat(20_000))).toBe(false);
});

test.each([
  [{}, "get", undefined, "search"],
  [{}, "get", true, "direct"],
  [{}, "get", ["g*"], "direct"],
  [{ directTools: false }, "get", true, "search"],
  [{ directTools: true }, "get", false, "direct"],
  [{ directTools: ["get"] }, "get", false, "direct"],
  [{ directTools: ["get"] }, "set", true, "search"],
  [{ exposure: "direct" }, "get", false, "direct"],
  [{ exposure: "hidden", directTools: true }, "get", true, "hidden"],
  [{ exposure: "hidden", directTools: ["get"] }, "get", true, "direct"],
  [{ exposure: "hidden", toolExposure: { "g*": "codemode" } }, "get", false, "search"],
  [{ toolExposure: { "*": "hidden", get: "direct" } }, "get", false, "direct"],
  [{ toolExposure: { "g*": "direct", "ge*": "hidden" } }, "get", false, "direct"],
  [{ excludeTools: ["g*"], directTools: true, toolExposure: { get: "direct" } }, "get", true, "hidden"],
  [{ includeTools: ["s*"] }, "get", true, "hidden"],
  [{ includeTools: ["g*"] }, "get", true, "direct"],
  [{ toolExposure: {} }, "constructor", false, "search"],
] as const)("%o: %s with settings %o -> %s", (entry, tool, settings, verdict) => {
  const direct = Array.isArray(settings) ? [...settings] : (settings as boolean | undefined);
  expect(exposureOf(tool, definition("a", { command: "x", ...entry }), direct)).toBe(verdict);
});

const LONG = `long_${"x".repeat(195)}`;

/** The exposure of a tool of the server `my-srv` under this rule. */
const verdictOf = (entry: Record<string, unknown>, tool: string, prefix: ToolPrefix = "server"): string =>
  exposureOf(
    tool,
    definition("my-srv", { command: "x", ...entry }),
    false,
    namesInRules("my-srv", tool, prefix),
  );

test.each<[string, ToolPrefix]>([
  ["plain", "server"],
  ["my.dotted", "short"],
  ["read", "none"],
  [LONG, "server"],
  [LONG, "short"],
  [LONG, "none"],
  [LONG, "mcp"],
])("the name of %.10s in Pi with toolPrefix %s -> every rule can use it", (tool, prefix) => {
  const [name = ""] = nameTools([{ server: "my-srv", tool, prefix }]).names;
  expect(name.length).toBeLessThanOrEqual(64);
  expect(verdictOf({ excludeTools: [name] }, tool, prefix)).toBe("hidden");
  expect(verdictOf({ excludeTools: [`${name.slice(0, -3)}*`] }, tool, prefix)).toBe("hidden");
  expect(verdictOf({ includeTools: [name] }, tool, prefix)).toBe("search");
  expect(verdictOf({ toolExposure: { "*": "hidden", [name]: "direct" } }, tool, prefix)).toBe("direct");
  expect(verdictOf({ directTools: [name] }, tool, prefix)).toBe("direct");
});

test.each<ToolPrefix>(["server", "short", "mcp"])(
  "the name in Pi without a server in it, toolPrefix %s -> excluded as with none",
  (prefix) => {
    const [name = ""] = nameTools([{ server: "my-srv", tool: "files.drop", prefix: "none" }]).names;
    expect(verdictOf({ excludeTools: [name] }, "files.drop", prefix)).toBe("hidden");
    expect(verdictOf({ includeTools: ["files_*"] }, "files.drop", prefix)).toBe("search");
  },
);

test.each<[string, string, ToolPrefix, string]>([
  ["1password", "list", "server", "1password__list"],
  ["mcp-1password", "list", "short", "1password__list"],
  ["blender", "3d_render", "none", "3d_render"],
])(
  "%s %s with toolPrefix %s -> a rule may hold its name, and %s, which it was before",
  (server, tool, prefix, before) => {
    const [name = ""] = nameTools([{ server, tool, prefix }]).names;
    expect(name).toBe(`_${before}`);
    const rules = namesInRules(server, tool, prefix);
    const hash = shortHash(`${server}\u0000${tool}`);
    for (const written of [name, before, `${name}_${hash}`, `${before}_${hash}`]) {
      const entry = definition(server, { command: "x", excludeTools: [written] });
      expect(exposureOf(tool, entry, false, rules)).toBe("hidden");
    }
  },
);

test.each<[string, ToolPrefix]>([
  ["a.b", "server"],
  ["a.b", "none"],
  ["a.b", "mcp"],
  [LONG, "none"],
])(
  "the name of %.10s where another tool wanted it too, toolPrefix %s -> meant, by no pattern",
  (tool, prefix) => {
    // The second has the same name, but for what a name cannot hold.
    const others = [tool, tool.replace(".", "_")].map((name) => ({ server: "my_srv", tool: name, prefix }));
    const [name = ""] = nameTools([{ server: "my-srv", tool, prefix }, ...others]).names;
    expect(verdictOf({ excludeTools: [name] }, tool, prefix)).toBe("hidden");
    expect(verdictOf({ toolExposure: { "*": "hidden", [name]: "direct" } }, tool, prefix)).toBe("direct");
  },
);

test("a pattern that fits a hash by chance -> does not count", () => {
  const names = nameTools([
    { server: "my-srv", tool: "a.b" },
    { server: "my-srv", tool: "a_b" },
  ]).names;
  expect(names[0]).toMatch(/^my_srv__a_b_\w{6}$/);
  expect(verdictOf({ excludeTools: [`*${names[0]?.slice(-6)}`] }, "a.b")).toBe("search");
});

test.each([
  ["lifecyle", "lifecycle"],
  ["LifeCycle", "lifecycle"],
  ["idle_timeout", "idleTimeout"],
  ["comand", "command"],
  ["dierctTools", "directTools"],
  ["serverUrl", "url"],
  ["xyz", undefined],
  ["x".repeat(100_000), undefined],
])("nearest key of %s -> %s", (key, near) => {
  expect(nearestKey(key, ["lifecycle", "idleTimeout", "command", "directTools", "url"])).toBe(near);
});

type Entry = Record<string, unknown>;
const servers = (x: Entry = {}, y: Entry = {}) => ({ x: { command: "x", ...x }, y: { command: "y", ...y } });

test.each<[name: string, mcp: unknown, variable: string | undefined, names: string[]]>([
  ["none", { mcpServers: servers() }, undefined, []],
  ["all of a server", { mcpServers: servers({ directTools: true }) }, undefined, ["x/a", "x/b"]],
  ["one of a server", { mcpServers: servers({ directTools: ["b"] }) }, undefined, ["x/b"]],
  [
    "the settings' but for one server",
    { settings: { directTools: true }, mcpServers: servers({}, { directTools: false }) },
    undefined,
    ["x/a", "x/b"],
  ],
  ["by toolExposure", { mcpServers: servers({ toolExposure: { "a*": "direct" } }) }, undefined, ["x/a"]],
  [
    "exposure but for one tool",
    { mcpServers: servers({ exposure: "direct", toolExposure: { b: "hidden" } }) },
    undefined,
    ["x/a"],
  ],
  ["MCP_DIRECT_TOOLS wins", { mcpServers: servers({ directTools: true }) }, "y/b", ["y/b"]],
  ["MCP_DIRECT_TOOLS *", { mcpServers: servers() }, "*", ["x/a", "x/b", "y/a", "y/b"]],
  ["MCP_DIRECT_TOOLS none", { mcpServers: servers({ directTools: true }) }, "__none__", []],
])("%s -> the direct tools, and their servers are waited for", async (_name, mcp, variable, expected) => {
  const agentDir = await temporaryFolder();
  await put(join(agentDir, "mcp.json"), mcp);
  const config = await loadConfig(facts({ agentDir, cwd: join(agentDir, "project"), home: agentDir }));
  const rule = directRule(variable);
  const { directTools } = config.settings;
  const tools = config.servers.flatMap((server) =>
    ["a", "b"].map((tool) => ({ tool, server, exposure: exposureOf(tool, server, directTools) })),
  );
  const direct = tools.filter(
    ({ tool, server, exposure }) =>
      exposure !== "hidden" && rule.isDirect({ tool, server, direct: exposure === "direct" }),
  );
  expect(direct.map(({ tool, server }) => `${server.name}/${tool}`)).toEqual(expected);
  const waitedFor = config.servers.filter((server) =>
    rule.concerns(server.name, mayBeDirect(server, directTools)),
  );
  expect(waitedFor.map(({ name }) => name)).toEqual([...new Set(direct.map(({ server }) => server.name))]);
});

const tool = (name: string, over: Partial<JudgedTool> = {}): JudgedTool => ({
  server: "s",
  tool: name,
  prefix: "server",
  annotations: undefined,
  ...over,
});

const verdict = (
  judged: JudgedTool,
  approve?: Approve,
  settings: SettingsApproval = "never",
  too: Approve[] = [],
) => verdictOn(judged, { approve, approveToo: too }, settings);

const READS = { readOnlyHint: true };

test("the words of all patterns that fit a tool, bounded; no words -> none", () => {
  const none = { names: [], hashed: () => [] };
  const words = { search: ["find"], "se*": ["look"], other: ["x"] };
  expect(keywordsFor("search", words, none)).toBe("find look");
  expect(keywordsFor("read", words, none)).toBeUndefined();
  expect(keywordsFor("read", undefined, none)).toBeUndefined();
  const many = { "*": Array.from({ length: 50 }, () => "a".repeat(100)) };
  expect(keywordsFor("read", many, none)).toHaveLength(LIMITS.searchKeywordsChars);
});

describe("the words", () => {
  test.each([
    ["never", undefined, "allow"],
    ["never", { destructiveHint: true }, "allow"],
    ["always", READS, "ask"],
    ["destructive", READS, "allow"],
    ["destructive", undefined, "ask"],
    ["destructive", {}, "ask"],
    ["destructive", { destructiveHint: false }, "ask"],
    ["destructive", { readOnlyHint: true, destructiveHint: false }, "allow"],
    ["destructive", { readOnlyHint: true, destructiveHint: true }, "ask"],
    ["destructive", { readOnlyHint: "true" }, "ask"],
    ["destructive", { readOnlyHint: 1 }, "ask"],
  ] as const)("%s and hints %o -> %s", (word, annotations, expected) => {
    expect(verdict(tool("t", { annotations }), word)).toBe(expected);
    expect(verdict(tool("t", { annotations }), undefined, word)).toBe(expected);
  });

  test("a server's word counts in place of the word of the settings", () => {
    expect(verdict(tool("t"), "never", "always")).toBe("allow");
    expect(verdict(tool("t"), "always", "never")).toBe("ask");
  });
});

describe("rules", () => {
  const RULES: Approve = { "read_*": "allow", "delete_*": "deny", "*": "ask" };
  test.each([
    ["read_file", "allow"],
    ["delete_file", "deny"],
    ["write_file", "ask"],
  ])("%s -> %s, in any order of the rules", (name, expected) => {
    expect(verdict(tool(name), RULES)).toBe(expected);
    const reversed = Object.fromEntries(Object.entries(RULES).toReversed());
    expect(verdict(tool(name), reversed as Approve)).toBe(expected);
  });

  test.each<[Approve, string]>([
    [{ "delete_*": "deny", "delete_tmp_*": "allow" }, "allow"],
    [{ "delete_*": "allow", "delete_tmp_*": "deny" }, "deny"],
    [{ delete_tmp_x: "allow", "delete_tmp_*": "deny" }, "allow"],
    [{ delete_tmp_x: "deny", s__delete_tmp_x: "allow" }, "deny"],
    [{ s__delete_tmp_x: "allow", "*": "deny" }, "allow"],
    // Equally specific: the stricter one counts.
    [{ "delete_*": "allow", "*e_tmp_x": "deny" }, "deny"],
    [{ "*e_tmp_x": "deny", "delete_*": "allow" }, "deny"],
    [{ "*": "destructive" }, "ask"],
    [{ "get_*": "deny" }, "allow"],
    [{}, "allow"],
  ])("%o decides about delete_tmp_x -> %s", (rules, expected) => {
    expect(verdict(tool("delete_tmp_x"), rules)).toBe(expected);
  });

  test("a tool that no rule of its server fits -> the settings decide", () => {
    expect(verdict(tool("t"), { other: "allow" }, "always")).toBe("ask");
    expect(verdict(tool("t"), { other: "allow" }, { "*": "deny" })).toBe("deny");
  });

  test("a hint never changes what a rule allows, asks or denies", () => {
    for (const annotations of [READS, { destructiveHint: true }]) {
      expect(verdict(tool("t", { annotations }), { t: "allow" }, "always")).toBe("allow");
      expect(verdict(tool("t", { annotations }), { t: "ask" })).toBe("ask");
      expect(verdict(tool("t", { annotations }), { t: "deny" })).toBe("deny");
    }
  });

  test("a thousand rules with many stars and a long name -> decided at once", () => {
    const rules = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, i) => [`${"*a".repeat(100)}*b${i}`, "deny" as const]),
    );
    expect(verdict(tool("a".repeat(1_000)), rules)).toBe("allow");
  });
});

describe("a tool whose name looks like that of another server's tool", () => {
  const settings: Approve = { "github__*": "allow", "*": "ask" };
  test.each([
    ["evil", "github__delete", "ask"],
    ["evil", "github..delete", "ask"],
    ["evil", "mcp__github__delete", "ask"],
    ["github", "delete", "allow"],
    ["github", "odd__name", "allow"],
    ["github-mcp", "delete", "allow"],
  ])("%s offers %s -> %s", (server, name, expected) => {
    for (const prefix of ["server", "none", "mcp", "short"] as const) {
      expect(verdict(tool(name, { server, prefix }), undefined, settings)).toBe(expected);
    }
  });

  test("a rule that asks or denies holds for such a name as well", () => {
    expect(verdict(tool("github__x", { server: "evil" }), undefined, { "github__*": "deny" })).toBe("deny");
    expect(verdict(tool("x", { server: "github__evil" }), undefined, { "github__*": "deny" })).toBe("deny");
  });
});

describe("a server whose name looks like that of another server", () => {
  test.each<[string, string, Record<string, "allow">, string[] | undefined, string]>([
    ["github__evil", "rm", { "github__*": "allow" }, undefined, "ask"],
    ["github__evil", "rm", { "mcp__github__*": "allow" }, undefined, "ask"],
    ["github__", "rm", { "github__*": "allow" }, undefined, "ask"],
    ["github_", "rm", { "github__*": "allow" }, undefined, "ask"],
    ["github__evil", "rm", { "github__evil__*": "allow" }, [], "allow"],
    ["my__db", "query", { "my__db__*": "allow" }, undefined, "allow"],
    // What a project or a package names.
    ["mcp-github", "rm", { "github__*": "allow" }, [], "ask"],
    ["github", "rm", { "github__*": "allow" }, [], "allow"],
    ["github", "rm", { "github__*": "allow" }, ["GitHub"], "allow"],
    ["github", "rm", { "github__*": "allow" }, ["github"], "ask"],
    ["github", "rm", { "github__*": "allow" }, ["mcp-github"], "ask"],
    ["my.db", "query", { my_db__query: "allow" }, ["my-db"], "ask"],
    ["my.db", "query", { my_db__query: "allow" }, [], "allow"],
    ["mcp", "github__rm", { "mcp__github__*": "allow" }, ["github"], "ask"],
    ["my", "db__rm", { "my__db__*": "allow" }, ["my__db"], "ask"],
    ["evil", "rm", { "*__rm": "allow" }, ["github"], "allow"],
    ["evil", "read_x", { "read_*": "allow" }, ["github"], "allow"],
    ["evil", "rm", { "mcp__*": "allow" }, ["github"], "allow"],
    ["evil", "rm", { "mcp__*": "allow" }, ["mcp"], "ask"],
    ["github", "rm", { "mcp__git*": "allow" }, undefined, "allow"],
  ])("%s offers %s, %o, the user's own: %o -> %s", (server, name, rules, usersServers, expected) => {
    const judged = tool(name, { server, ...(usersServers && { usersServers }) });
    expect(verdict(judged, undefined, { ...rules, "*": "ask" })).toBe(expected);
  });

  test("the short name counts for a project's server where names are short", () => {
    const judged = tool("x", { server: "mcp-docs", prefix: "short", usersServers: ["github"] });
    expect(verdict(judged, undefined, { "docs__*": "allow", "*": "ask" })).toBe("allow");
  });

  test("a name that is cut, with its hash -> allowed by the whole name", () => {
    const long = "x".repeat(80);
    const { names } = nameTools([{ server: "my-db", tool: long }]);
    expect(
      verdict(tool(long, { server: "my-db" }), undefined, { [names[0] ?? ""]: "allow", "*": "ask" }),
    ).toBe("allow");
  });
});

describe("files of a project", () => {
  test.each<[Approve | undefined, SettingsApproval, Approve[], string, boolean]>([
    ["never", "never", [], "allow", true],
    ["never", "never", ["always"], "ask", false],
    ["always", "never", ["never"], "ask", true],
    [{ t: "deny" }, "never", [{ t: "allow" }], "deny", true],
    [{ t: "allow" }, "never", [{ t: "ask" }, { t: "deny" }], "deny", false],
    ["never", ["never", "always"], [], "ask", false],
    [undefined, ["always", "never"], [], "ask", true],
    ["never", ["always", { "*": "deny" }], [], "deny", false],
  ])("%o, %o and the project's %o -> %s", (approve, settings, approveToo, expected, canAllow) => {
    expect(verdict(tool("t"), approve, settings, approveToo)).toBe(expected);
    expect(canBeAllowed(tool("t"), { approve, approveToo }, settings)).toBe(canAllow);
  });
});

test.each<[Approve | undefined, SettingsApproval, Approve[], boolean]>([
  [undefined, "never", [], true],
  ["never", "never", [], true],
  ["never", "always", [], false],
  [{}, "never", [], false],
  [undefined, "never", ["never"], false],
  [undefined, ["never", "never"], [], false],
])("asksNothing(%o, %o, %o) -> %s", (approve, settings, approveToo, expected) => {
  expect(asksNothing({ approve, approveToo }, settings)).toBe(expected);
});

test.each<[Approve | undefined, object]>([
  [undefined, {}],
  ["never", { "*": "allow" }],
  ["destructive", { "*": "destructive" }],
  ["always", { "*": "ask" }],
  [{ a: "deny" }, { a: "deny" }],
])("asRules(%o) -> rules that mean the same", (approve, rules) => {
  expect(asRules(approve)).toEqual(rules);
});

test.each([
  ["t", true],
  ["with space", true],
  ["*", false],
  ["delete_*", false],
  ["__proto__", false],
  ["x".repeat(257), false],
])("canBeAllowed, the tool %s -> %s", (name, expected) => {
  expect(canBeAllowed(tool(name), { approve: "always", approveToo: [] }, "always")).toBe(expected);
});

test.each([
  ["read_file", ["read.file", "read/file"], false],
  ["s__delete", ["delete"], false],
  ["read_file", ["read_files", "write_file"], true],
])("a rule for %s, and the server has %j as well -> may be kept: %s", (name, others, expected) => {
  const server = { approve: "always", approveToo: [] } as const;
  expect(canBeAllowed(tool(name), server, "always", [name, ...others])).toBe(expected);
});

test("a rule for the tool under another of its names asks -> a rule under its own name would change nothing", () => {
  const server = { approve: { s__t: "ask" }, approveToo: [] } as const;
  expect(canBeAllowed(tool("t"), server, "never")).toBe(false);
});
