/** Owns: what files of other programs ask about, switch off or restrict, and that it is no less here. */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../../../src/shared/protocol/limits.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { DEFAULT_SETTINGS } from "../../../../../../workers/connection/config/entry/settings.ts";
import { parseConfigText } from "../../../../../../workers/connection/config/files/files.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import { hostSources } from "../../../../../../workers/connection/config/hosts/hosts.ts";
import { mergeLayers } from "../../../../../../workers/connection/config/merge/layers.ts";
import { decideTrust } from "../../../../../../workers/connection/config/trust/decide.ts";
import { facts, fixture, PROJECT_FILE, USER } from "../support.ts";
import { merged, running, shows, verdict } from "./support.ts";

describe("pi-mcp-adapter", () => {
  test("its file: approveTools asks, and its other words switch nothing off", async () => {
    const { entries, settings, problems } = parseConfigText(await fixture("pi-mcp-adapter.json"), USER);
    expect(problems).toEqual([]);
    const servers = Object.fromEntries(
      entries.flatMap((entry) =>
        entry.kind === "server" ? [[entry.definition.name, entry.definition]] : [],
      ),
    );
    expect(settings).toMatchObject({
      approve: { "github_delete_*": "ask", "notion_update_*": "ask" },
      directTools: false,
    });
    expect(servers.github).toMatchObject({
      approve: { "delete_*": "ask", merge_pull_request: "ask" },
      lifecycle: "lazy",
      idleTimeoutMinutes: 0,
      directTools: false,
      requestTimeoutMs: undefined,
    });
    expect([servers.notion?.approve, servers.docs?.approve]).toEqual(["always", "never"]);
    expect(["delete_repo", "get_me"].map((tool) => verdict(servers.github, tool))).toEqual(["ask", "allow"]);
    expect(verdict(servers.docs, "update_x", settings.approve)).toBe("allow");
  });

  test("its sign for a single character", () => {
    const text = JSON.stringify({ mcpServers: { a: { command: "x", approveTools: ["dr?p"] } } });
    const { entries } = parseConfigText(text, USER);
    expect(entries[0]).toMatchObject({ definition: { approve: { "dr*p": "ask" } } });
  });

  test("approve beside it counts", () => {
    const text = JSON.stringify({
      mcpServers: { a: { command: "x", approveTools: true, approve: "never" } },
      settings: { approveTools: true, approve: { "*": "deny" } },
    });
    const { entries, settings } = parseConfigText(text, USER);
    expect(entries[0]).toMatchObject({ definition: { approve: "never" } });
    expect(settings.approve).toEqual({ "*": "deny" });
  });

  test.each([5, "delete_*", [5], { "*": "ask" }])(
    "a wrong value, %j -> the strictest, and the server is off",
    (wrong) => {
      const text = JSON.stringify({
        mcpServers: { a: { command: "x", approveTools: wrong } },
        settings: { approveTools: wrong },
      });
      const { entries, settings, problems } = parseConfigText(text, USER);
      expect(entries).toMatchObject([{ kind: "override", override: { enabled: false } }]);
      expect(settings.approve).toBe("always");
      expect(problems.map(({ key, severity }) => [key?.replace(/\.0$/, ""), severity])).toEqual([
        ["mcpServers.a.approveTools", "error"],
        ["settings.approveTools", "error"],
      ]);
      expect(problems[1]?.remedy).toContain('approve counts as "always"');
    },
  );

  test("a project's file adds it to what the user's own server asks about", () => {
    const own = parseConfigText('{"mcpServers": {"a": {"command": "x", "approve": {"b": "ask"}}}}', USER);
    const project = parseConfigText('{"mcpServers": {"a": {"approveTools": ["c"]}}}', PROJECT_FILE);
    const [server] = mergeLayers({ registered: [], hosts: [], files: [own, project] }).servers;
    expect(["b", "c", "d"].map((tool) => verdict(server, tool))).toEqual(["ask", "ask", "allow"]);
  });
});

describe("Codex", () => {
  test("its modes of approval", async () => {
    const { servers } = merged("codex", [["user", await fixture("codex.toml")]]);
    const { docs } = servers;
    expect(docs?.approve).toEqual({ "*": "destructive", "query-docs": "allow" });
    expect(verdict(docs, "slow")).toBe("ask");
    expect(verdict(docs, "slow", "never", { readOnlyHint: true })).toBe("allow");
  });

  test.each<[string, Record<string, string>, object | undefined]>([
    ["prompt", {}, { "*": "ask" }],
    ["writes", {}, { "*": "destructive" }],
    ["prompt", { a: "auto", b: "approve" }, { "*": "ask", b: "allow" }],
    ["a later word", { a: "another" }, { "*": "ask", a: "ask" }],
    ["auto", { a: "prompt", b: "approve" }, { a: "ask" }],
    // What it lets run goes by the person's own rules.
    ["approve", { a: "approve" }, undefined],
    ["approve", { a: "writes" }, { a: "destructive" }],
  ])("%s, %j -> %j", (mode, tools, approve) => {
    const text = [
      `[mcp_servers.s]\ncommand = "x"\ndefault_tools_approval_mode = "${mode}"`,
      ...Object.entries(tools).map(
        ([tool, one]) => `[mcp_servers.s.tools.${tool}]\napproval_mode = "${one}"`,
      ),
    ].join("\n");
    expect(merged("codex", [["user", text]]).servers.s?.approve).toEqual(approve);
  });

  test("a project's file narrows the user's servers at once, and switches none on without a yes", async () => {
    const { all, problems } = merged("codex", [
      ["user", (await fixture("codex.toml")).replace('enabled_tools = ["query-docs"]\n', "")],
      ["project", await fixture("codex-project.toml")],
    ]);
    const now = running(all);
    expect(problems).toEqual([expect.stringContaining("expected a string")]);
    expect(Object.keys(now)).toEqual(["docs"]);
    expect(now.docs).toMatchObject({ project: false, target: { args: ["-y", "@upstash/context7-mcp"] } });
    expect(now.docs?.passesOn).toEqual(["LOCAL_TOKEN"]);
    expect(shows(now.docs, "query-docs", "resolve")).toEqual(["query-docs"]);
    // The user's exception for this tool is no exception from what the project asks about.
    expect(verdict(now.docs, "query-docs")).toBe("ask");
    expect(all.find(({ name }) => name === "with space")).toMatchObject({ project: true, enabled: true });
  });

  test("a project's file widens nothing", () => {
    const user = `[mcp_servers.s]
command = "x"
enabled_tools = ["a", "b"]
disabled_tools = ["b"]
default_tools_approval_mode = "prompt"`;
    const project = `[mcp_servers.s]
enabled_tools = ["a", "b", "c"]
disabled_tools = []
default_tools_approval_mode = "approve"
[mcp_servers.s.tools.a]
approval_mode = "approve"`;
    const { s } = running(
      merged("codex", [
        ["user", user],
        ["project", project],
      ]).all,
    );
    expect(shows(s, "a", "b", "c")).toEqual(["a"]);
    expect(verdict(s, "a")).toBe("ask");
  });

  test("a project's file changes what runs -> a question; until then the user's server runs, narrowed", () => {
    const user = `[mcp_servers.s]
command = "x"
args = ["a"]
env = { MINE = "1" }
default_tools_approval_mode = "prompt"`;
    const project = `[mcp_servers.s]
disabled_tools = ["drop"]
env = { THEIRS = "2" }`;
    const { all } = merged("codex", [
      ["user", user],
      ["project", project],
    ]);
    expect(all[0]).toMatchObject({
      project: true,
      definedByProject: false,
      target: { command: "x", args: ["a"], env: { MINE: "1", THEIRS: "2" } },
    });
    expect(verdict(all[0], "y")).toBe("ask");
    const { s } = running(all);
    expect(s).toMatchObject({ project: false, target: { env: { MINE: "1" } } });
    expect(s?.target).not.toHaveProperty("env.THEIRS");
    expect(shows(s, "drop", "y")).toEqual(["y"]);
  });

  test("an entry that lacks its command is told; one that only narrows a server that is not there says nothing", () => {
    const text = '[mcp_servers.a]\nargs = ["x"]\n[mcp_servers.b]\nenabled = false\n';
    const { servers, problems } = merged("codex", [["user", text]]);
    expect(servers).toEqual({});
    expect(problems).toEqual(["neither command nor url is given"]);
  });

  test.each(['disabled_tools = "drop"', "enabled = 5", "enabled_tools = [5]"])(
    "a project's wrong rule, %s -> told, and the user's server stays",
    (wrong) => {
      const { all, problems } = merged("codex", [
        ["user", '[mcp_servers.s]\ncommand = "x"\n'],
        ["project", `[mcp_servers.s]\n${wrong}\n`],
      ]);
      expect(problems).toHaveLength(1);
      expect(running(all).s).toMatchObject({ project: false });
    },
  );
});

describe("OpenCode", () => {
  test("what it takes away is excluded, and what it asks about asks", async () => {
    const { servers } = merged("opencode", [["user", await fixture("opencode-v2.jsonc")]]);
    expect(shows(servers.jira, "delete_issue", "search", "create")).toEqual(["search", "create"]);
    expect(["search", "create"].map((tool) => verdict(servers.jira, tool))).toEqual(["allow", "ask"]);
    expect(servers["my-server"]).toMatchObject({ excludeTools: [], approve: undefined });
  });

  const SERVERS = { gh: { type: "local", command: ["x"] }, other: { type: "local", command: ["y"] } };
  test.each<[object, hidden: string[], asked: string[]]>([
    [{ tools: { "gh*": false } }, ["read", "drop"], []],
    [{ tools: { gh_drop: false, write: false, other_read: false } }, ["drop"], []],
    [{ permission: { "gh_d?op": "deny" } }, ["drop"], []],
    [{ permission: "ask" }, [], ["read", "drop"]],
    [{ permission: { "*": "ask", gh_read: "allow" } }, [], ["drop"]],
    // The last one that fits counts there.
    [{ permission: { gh_read: "allow", "gh_*": "ask" } }, [], ["read", "drop"]],
    [{ permission: { "*_drop": "ask" } }, [], ["drop"]],
    [{ permission: { gh: "deny", bash: { "*": "deny" } } }, [], []],
    // What a tool of a server is called with is no part of what it is asked about there.
    [{ permission: { gh_drop: { "*": "deny" } } }, ["drop"], []],
    [
      { permission: { "gh_*": { "*": "ask", "a*": "allow" }, gh_read: { "*": "deny", "?": "allow" } } },
      [],
      ["drop"],
    ],
    [{ permission: { gh_drop: { "a*": "deny", "": "deny" } } }, [], []],
    [{ permission: "allow", tools: { "gh*": true } }, [], []],
    // A later rule lifts what it covers.
    [{ permission: { "*": "deny", "gh_*": "allow" } }, [], []],
    [{ permission: { "*": "deny", "gh*": "ask", gh_read: "allow" } }, [], ["drop"]],
    [{ tools: { gh_drop: false, "gh_dr*": true } }, [], []],
    // What is switched off stays off.
    [{ tools: { gh_drop: false }, permission: { "gh_dr*": "allow" } }, ["drop"], []],
    [
      { tools: { "*": false, gh_read: true }, permission: { "*": "deny", "gh_*": "ask" } },
      ["drop"],
      ["read"],
    ],
    [
      { tools: { "*": false, gh_read: true }, permission: { "*": "deny", gh_drop: "allow" } },
      ["read", "drop"],
      [],
    ],
    [{ permission: { "*": "deny", gh_read: "allow" } }, ["drop"], []],
    [{ permission: { "*": "deny", gh_read: "ask", other_drop: "allow" } }, ["drop"], ["read"]],
    [{ permission: { "gh_*": "allow", "*": "deny" } }, ["read", "drop"], []],
    [{ permission: { "*": "deny", "gh_*": "allow", gh_drop: "deny" } }, ["drop"], []],
    // It lifts no more than it lets run in OpenCode.
    [{ permission: { "*": "deny", "gh_rea?": "allow" } }, ["read", "drop"], []],
    [{ permission: { "*": "deny", "gh_d?": "ask" } }, ["read", "drop"], []],
    [{ permission: { "*": "deny", gh_: "allow" } }, ["read", "drop"], []],
  ])("%j", (root, hidden, asked) => {
    const { gh } = merged("opencode", [["user", { mcp: SERVERS, ...root }]]).servers;
    const shown = shows(gh, "read", "drop");
    expect(["read", "drop"].filter((tool) => !shown.includes(tool))).toEqual(hidden);
    expect(shown.filter((tool) => verdict(gh, tool) === "ask")).toEqual(asked);
  });

  test("an exception from what is denied that cannot be told apart here -> it is told, once for the file", () => {
    const permission = { "gh_d*": "deny", "other_d*": "deny", gh_drop: "allow", other_drop: "allow" };
    const { servers, problems } = merged("opencode", [["user", { mcp: SERVERS, permission }]]);
    expect(shows(servers.gh, "read", "drop")).toEqual(["read"]);
    expect(problems).toEqual([
      expect.stringContaining("is an exception from what a rule of the file denies"),
    ]);
  });

  test("two files that each leave some tools -> those that both leave", () => {
    const { all } = merged("opencode", [
      ["user", { mcp: SERVERS, permission: { "*": "deny", "gh_r*": "allow", gh_list: "allow" } }],
      ["project", { permission: { "*": "deny", gh_read: "allow", "gh_d*": "allow", gh_list: "allow" } }],
      ["last", { permission: { "*": "deny", "gh_*": "allow", gh_drop: "allow" } }],
    ]);
    expect(shows(running(all).gh, "read", "run", "list", "drop")).toEqual(["read", "list"]);
  });

  test("a later file rules the servers of an earlier one, and takes nothing back", () => {
    const { all } = merged("opencode", [
      ["user", { mcp: SERVERS, tools: { gh_a: false }, permission: { gh_x: "ask" } }],
      ["project", { tools: { gh_b: false, gh_a: true }, permission: { gh_y: "ask", "gh_*": "allow" } }],
      ["last", { tools: { gh_c: false } }],
    ]);
    const { gh } = running(all);
    expect(gh).toMatchObject({ project: false });
    expect(shows(gh, "a", "b", "c", "d")).toEqual(["d"]);
    expect(["x", "y", "z"].map((tool) => verdict(gh, tool))).toEqual(["ask", "ask", "allow"]);
  });

  test("an earlier file rules the servers of a later one", () => {
    const { all, servers } = merged("opencode", [
      ["user", { tools: { gh_a: false, "other*": false }, permission: { "gh_*": "ask" } }],
      ["project", { mcp: { other: SERVERS.other }, permission: { "*": "ask", other_x: "allow" } }],
      ["last", { mcp: { gh: SERVERS.gh }, permission: { gh_x: "allow" } }],
    ]);
    expect(shows(servers.gh, "a", "b")).toEqual(["b"]);
    expect(verdict(servers.gh, "x")).toBe("ask");
    expect(servers.gh).toMatchObject({ project: false });
    expect(shows(servers.other, "x", "y")).toEqual([]);
    expect(Object.keys(running(all))).toEqual(["gh"]);
  });

  test("files that only rule a server are told once, and not its own", () => {
    const { servers } = merged("opencode", [
      ["user", { mcp: SERVERS, permission: { "*": "ask" } }],
      ["project", { mcp: { gh: { enabled: true } }, permission: { "gh_*": "ask" } }],
      ["last", { permission: { "*": "ask" } }],
    ]);
    const sources = hostSources("opencode", facts());
    const project = sources.find(({ origin }) => origin === "project-file")?.file;
    expect(servers.gh?.overrides).toEqual([project, sources.at(-1)?.file]);
  });

  test("what a project's file lets run is not what the user's lets run", () => {
    const project = { mcp: SERVERS, permission: { "gh_*": "ask", gh_x: "allow" } };
    const user = { permission: { gh_y: "ask" } };
    const { gh } = merged("opencode", [
      ["project", project],
      ["last", user],
    ]).servers;
    expect(["x", "y", "z"].map((tool) => verdict(gh, tool, "always"))).toEqual(["ask", "ask", "ask"]);
    expect(gh).toMatchObject({ project: true });
  });

  test("more rules than are compared, or one that is too long -> the servers are off", () => {
    const tools = Object.fromEntries(
      Array.from({ length: LIMITS.toolRules + 1 }, (_, at) => [`gh_${at}`, false]),
    );
    const long = { [`gh_${"x".repeat(LIMITS.toolRuleChars + 1)}`]: false };
    for (const root of [{ tools }, { tools: long }])
      expect(
        running(
          merged("opencode", [
            ["user", { mcp: SERVERS }],
            ["project", root],
          ]).all,
        ).gh,
      ).toBeUndefined();
  });
});

describe("OpenCode: rules of many files", () => {
  const servers = (count: number): object =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [`s${at}`, { type: "local", command: ["x"] }]),
    );
  const rules = (count: number, from = 0): object =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`*_t${from + at}`, "ask"]));
  const half = LIMITS.toolRules / 2;
  const list = (count: number, name: (at: number) => string, rule: unknown): object =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [name(at), rule]));
  const denied = (count: number): object => list(count, (at) => `*_x${at}`, "deny");
  const allowed = (count: number): object => list(count, (at) => `*_t${at}`, "allow");
  const switched = (count: number): object => list(count, (at) => `*_t${at}`, true);

  test("as many as may be in all -> each file's count", () => {
    const { all, problems } = merged("opencode", [
      ["user", { mcp: servers(1), permission: rules(half) }],
      ["project", { permission: rules(half, half) }],
    ]);
    expect(problems).toEqual([]);
    expect(["t0", `t${half}`, "other"].map((tool) => verdict(all[0], tool))).toEqual(["ask", "ask", "allow"]);
  });

  test("one more in all -> the program's servers are off, which is told once", () => {
    const { all, problems } = merged("opencode", [
      ["user", { mcp: servers(2), permission: rules(half) }],
      ["project", { permission: rules(half, half) }],
      ["last", { permission: rules(1, 2 * half) }],
    ]);
    expect(all.map(({ enabled }) => enabled)).toEqual([false, false]);
    expect(problems).toEqual([expect.stringContaining("more than 1,000 rules for tools")]);
  });

  test("too many servers for the rules -> the same", () => {
    const { all, problems } = merged("opencode", [
      ["user", { mcp: servers(1) }],
      ["project", { mcp: servers(LIMITS.serversPerProjectFile), permission: rules(LIMITS.toolRules) }],
    ]);
    expect(all.some(({ enabled }) => enabled)).toBe(false);
    expect(problems).toEqual([expect.stringContaining("500,000 comparisons")]);
  });

  test.each<[string, (half: number) => object, (half: number) => object]>([
    [
      "exceptions from what is denied",
      (some) => ({ permission: { ...denied(some), ...allowed(some) } }),
      () => ({}),
    ],
    [
      "two files that leave some tools",
      (some) => ({ permission: { "*": "deny", ...allowed(some - 1) } }),
      (some) => ({ permission: { "*": "deny", ...allowed(some - 1) } }),
    ],
    [
      "tools and permission that leave some tools",
      (some) => ({
        tools: { "*": false, ...switched(some - 1) },
        permission: { "*": "deny", ...allowed(some - 1) },
      }),
      () => ({}),
    ],
  ])("%s -> each pair is a comparison", (_what, first, second) => {
    const files = (half: number) =>
      merged("opencode", [
        ["user", { mcp: servers(10), ...first(half) }],
        ["project", second(half)],
      ]);
    expect(files(50).problems).toEqual([]);
    expect(files(400).problems).toEqual([expect.stringContaining("500,000 comparisons")]);
  });

  test("rules that are each for one of many servers -> they are compared with those for the same server", () => {
    const each = Array.from({ length: 60 }, (_, at) => [
      ...Array.from({ length: 4 }, (_, i) => [`s${at}_x${i}`, "deny"]),
      ...Array.from({ length: 4 }, (_, i) => [`s${at}_y${i}`, "allow"]),
    ]);
    const { all, problems } = merged("opencode", [
      ["user", { mcp: servers(60), permission: Object.fromEntries(each.flat()) }],
    ]);
    expect(problems).toEqual([]);
    expect(Object.keys(running(all))).toHaveLength(60);
    expect(shows(all[59], "x3", "y3", "z")).toEqual(["y3", "z"]);
  });

  test("a project's server that several files rule -> one question", () => {
    const { all } = merged("opencode", [
      ["user", { permission: { "*": "ask" } }],
      ["project", { mcp: servers(1), permission: { "*_a": "ask" } }],
      ["last", { permission: { "*_b": "ask" } }],
    ]);
    const { pending } = decideTrust(all, [], { projectTrusted: true, canAsk: true, folder: "/work/app" });
    expect(pending.map(({ definition }) => definition.name)).toEqual(["s0"]);
  });
});

describe("Claude Code", () => {
  const names = async (over: Partial<ConfigFacts>): Promise<[string, boolean][]> => {
    const { all } = merged("claude-code", [["user", await fixture("claude-code-worktree.json")]], over);
    return all.map(({ name, enabled }) => [name, enabled]);
  };
  const off = ["github", false];
  const quick = ["quick", true];

  test.each<[string, Partial<ConfigFacts>, unknown[]]>([
    ["the repository's root", { cwd: "/work/app" }, [off, quick, ["loc", true]]],
    [
      "a folder of it",
      { cwd: "/work/app/sub", worktree: "/work/app" },
      [off, quick, ["loc", true], ["nearer", true]],
    ],
    [
      "a folder of a linked worktree",
      { cwd: "/work/tree/sub", worktree: "/work/tree", repository: "/work/app" },
      [off, quick, ["loc", true]],
    ],
    ["another repository", { cwd: "/work/other", worktree: "/work/other" }, [["github", true], quick]],
  ])("its local scope in %s", async (_, over, expected) => {
    expect(await names(over)).toEqual(expected);
  });

  test("its time limits are milliseconds, of which it takes no less than a second", async () => {
    const { servers } = merged("claude-code", [["user", await fixture("claude-code-worktree.json")]]);
    expect([servers.github?.requestTimeoutMs, servers.quick?.requestTimeoutMs]).toEqual([600_000, undefined]);
  });
});

describe("Gemini CLI", () => {
  const user = { mcpServers: { gh: { command: "x" }, github: { command: "y" } } };
  const isOn = (all: readonly ServerDefinition[]): string[] => Object.keys(running(all));

  test("servers that were switched off are off, whoever defines them", async () => {
    const project = { mcpServers: { GitHub: { command: "z" } } };
    const { servers } = merged("gemini-cli", [
      ["user", user],
      ["project", project],
      ["last", await fixture("gemini-cli-switches.json")],
    ]);
    expect(Object.values(servers).map(({ name, enabled }) => [name, enabled])).toEqual([
      ["gh", true],
      ["github", false],
      ["GitHub", false],
    ]);
  });

  test("what the user allows alone binds a project's servers, too", () => {
    const { servers } = merged("gemini-cli", [
      ["user", { mcp: { allowed: ["gh"] }, ...user }],
      ["project", { mcpServers: { theirs: { command: "z" } } }],
    ]);
    expect([servers.gh?.enabled, servers.theirs?.enabled]).toEqual([true, false]);
  });

  test("settings of that file's keys switch nothing off", () => {
    const { all } = merged("gemini-cli", [
      ["user", { ...user, gh: { enabled: false }, telemetry: { enabled: false } }],
    ]);
    expect(isOn(all)).toEqual(["gh", "github"]);
  });

  test.each<[object, string[]]>([
    [{ mcp: { excluded: ["gh"] } }, ["github"]],
    [{ mcp: { excluded: ["GH "] } }, ["github"]],
    [{ mcp: { allowed: ["gh"] } }, ["gh"]],
    [{ mcp: { excluded: "gh", allowed: 5 } }, ["gh", "github"]],
  ])("a project's %j counts for the user's servers", (project, on) => {
    const { all, problems } = merged("gemini-cli", [
      ["user", user],
      ["project", project],
    ]);
    expect(isOn(all)).toEqual(on);
    expect(problems).toEqual([]);
  });

  test("a server of the project's that it excludes is not there, and neither is the user's of that name", () => {
    const project = { mcpServers: { gh: { command: "theirs" } }, mcp: { excluded: ["gh"] } };
    const { all } = merged("gemini-cli", [
      ["user", user],
      ["project", project],
    ]);
    expect(isOn(all)).toEqual(["github"]);
    expect(all.find(({ name }) => name === "gh")?.replaced?.enabled).toBe(false);
  });

  test("GEMINI_CLI_HOME", () => {
    const files = hostSources("gemini-cli", facts({ env: { GEMINI_CLI_HOME: "/g" } })).map(
      ({ file }) => file,
    );
    expect(files).toEqual([
      "/g/.gemini/settings.json",
      "/work/app/.gemini/settings.json",
      "/g/.gemini/mcp-server-enablement.json",
    ]);
  });
});

test("VS Code: a sandbox without allowedDomains has no network; with some, what it lacks is told", async () => {
  const { servers, problems } = merged("vscode", [["user", await fixture("vscode-sandbox.json")]]);
  expect([servers.alone?.sandbox, servers.ruled?.sandbox]).toEqual([{ network: false }, true]);
  expect(problems).toEqual([expect.stringContaining("reaches the whole network")]);
});

describe("GitHub Copilot CLI", () => {
  test("servers that /mcp disable has switched off are off, whoever defines them; its settings bring none", () => {
    const off = { disabledMcpServers: ["gh", "theirs"], mcpServers: { none: { command: "w" } } };
    const { servers, problems } = merged("copilot-cli", [
      ["user", { mcpServers: { gh: { command: "x" }, docs: { command: "y" } } }],
      ["project", { mcpServers: { theirs: { command: "z" } }, disabledMcpServers: ["docs"] }],
      ["last", off],
    ]);
    expect(Object.values(servers).map(({ name, enabled }) => [name, enabled])).toEqual([
      ["gh", false],
      ["docs", true],
      ["theirs", false],
    ]);
    expect(problems).toEqual([]);
  });

  test("the settings name none, or something else -> the servers are on", () => {
    for (const last of [{}, { disabledMcpServers: "gh" }, { disabledMcpServers: { gh: true } }]) {
      const user = { mcpServers: { gh: { command: "x" } } };
      const { servers, problems } = merged("copilot-cli", [
        ["user", user],
        ["last", last],
      ]);
      expect([servers.gh?.enabled, problems]).toEqual([true, []]);
    }
  });

  test("COPILOT_HOME", () => {
    const files = hostSources("copilot-cli", facts({ env: { COPILOT_HOME: "/c" } })).map(({ file }) => file);
    expect(files).toEqual([
      "/c/mcp-config.json",
      "/work/app/.github/mcp.json",
      "/c/config.json",
      "/c/settings.json",
    ]);
  });

  test("its OAuth clients; what only Copilot has is left out, with the reason", async () => {
    const { servers, problems } = merged("copilot-cli", [["user", await fixture("copilot-cli.json")]]);
    expect(servers["fixed-client"]).toMatchObject({
      oauth: { clientId: "Iv1.0123456789abcdef", scope: "read write" },
      requestTimeoutMs: 60_000,
    });
    expect(Object.keys(servers)).toEqual(["github", "docs", "fixed-client", "events"]);
    expect(problems).toEqual([
      expect.stringMatching(/cannot be imported: .*keychain/),
      expect.stringMatching(/cannot be imported: .*oidc/),
    ]);
  });

  test("its workspace file, which is our .mcp.json, too", async () => {
    const { entries, problems } = parseConfigText(await fixture("copilot-workspace.json"), PROJECT_FILE);
    const [playwright, docs] = entries.map((entry) =>
      entry.kind === "server" ? entry.definition : undefined,
    );
    expect(playwright?.target).toMatchObject({ kind: "stdio", command: "npx" });
    expect(shows(playwright, "browser_navigate", "browser_run_code")).toEqual(["browser_navigate"]);
    expect(docs?.includeTools).toBeUndefined();
    // Whoever wrote seconds keeps them, and the other programs their milliseconds.
    expect(playwright?.requestTimeoutMs).toBe(30_000_000);
    expect(problems).toMatchObject([
      {
        severity: "warning",
        line: 8,
        message: expect.stringContaining("500 minutes"),
        remedy: expect.stringContaining('"requestTimeoutMs": 30000'),
      },
    ]);
  });

  test.each<[object, string | undefined]>([
    [{ timeout: 1_800 }, undefined],
    [{ timeout: 86_400 }, undefined],
    [{ timeout: 600_000 }, "timeout"],
    [{ timeout: 600_000, requestTimeoutMs: 600_000 }, undefined],
    [{ tools: "*" }, undefined],
    [{ tools: [{ name: "a" }] }, "tools"],
    [{ tools: { a: {} } }, "tools"],
    [{ type: "local" }, undefined],
  ])("%j beside a command -> a warning at %s", (more, key) => {
    const { entries, problems } = parseConfigText(
      JSON.stringify({ mcpServers: { a: { command: "x", ...more } } }),
      USER,
    );
    expect(entries).toMatchObject([{ kind: "server" }]);
    expect(problems.map((one) => [one.severity, one.key])).toEqual(
      key === undefined ? [] : [["warning", `mcpServers.a.${key}`]],
    );
  });

  test.each(["remote", "streamableHttp"])("the type %s is http", (type) => {
    const text = JSON.stringify({ mcpServers: { a: { url: "https://x.test", type } } });
    expect(parseConfigText(text, USER)).toMatchObject({
      problems: [],
      entries: [{ definition: { target: { kind: "http", type: "http" } } }],
    });
  });
});

test("rules of a program's file are those of a user's file: the settings count where none fits", () => {
  const { s } = merged("codex", [
    ["user", '[mcp_servers.s]\ncommand = "x"\n[mcp_servers.s.tools.a]\napproval_mode = "prompt"\n'],
  ]).servers;
  expect(verdict(s, "b", DEFAULT_SETTINGS.approve)).toBe("allow");
  expect(verdict(s, "b", "always")).toBe("ask");
});
