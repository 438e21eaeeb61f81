import { expect, test } from "vitest";
import { describeProblem } from "../../../../../../src/shared/text/failure.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import type { HostName } from "../../../../../../workers/connection/config/entry/schema.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import {
  type HostFile,
  hostSources,
  parseHostText,
} from "../../../../../../workers/connection/config/hosts/hosts.ts";
import {
  type ResolvedTarget,
  resolveTarget,
} from "../../../../../../workers/connection/config/values/values.ts";
import { facts, fixture } from "../support.ts";

function read(
  host: HostName,
  text: string,
  before: ServerDefinition[] = [],
  over: Partial<ConfigFacts> = {},
): HostFile {
  const [source] = hostSources(host, facts(over));
  if (!source) throw new Error("no source");
  return parseHostText(text, { host, source, facts: facts(over), before });
}

/** The values that a server really gets, with `X` set in the environment. */
async function given(server: ServerDefinition | undefined): Promise<ResolvedTarget> {
  if (!server) throw new Error("not imported");
  return resolveTarget(server, {
    env: { X: "filled" },
    home: "/home/me",
    cwd: "/work/app",
    signal: new AbortController().signal,
    onSpawn: () => undefined,
    onExit: () => undefined,
    platform: "linux",
  });
}

const byName = ({ servers }: HostFile): Record<string, ServerDefinition> =>
  Object.fromEntries(servers.map((server) => [server.name, server]));

test("Cursor: its variables, OAuth clients, and no !command", async () => {
  const file = read("cursor", await fixture("cursor.json"));
  expect(file.problems).toEqual([]);
  expect(byName(file)).toMatchObject({
    playwright: {
      origin: "import",
      target: {
        kind: "stdio",
        command: "npx",
        env: { ROOT: "/work/app", PASSWORD: "!!hunter2", PROMPT: "$${X} $$env:X" },
        envFile: "/work/app/.env",
      },
    },
    userjot: { target: { kind: "http", headers: { Authorization: "Bearer ${env:USERJOT_API_TOKEN}" } } },
    "oauth-server": { oauth: { clientId: "id", clientSecret: "${env:SECRET}", scope: "read write" } },
  });
});

test("Claude Code: servers of the user and of this very folder", async () => {
  const file = read("claude-code", await fixture("claude-code.json"));
  expect(Object.keys(byName(file))).toEqual(["notion", "asana", "chrome-devtools"]);
  expect(byName(file)).toMatchObject({
    notion: { target: { kind: "http", url: "https://mcp.notion.com/mcp", type: "http" }, enabled: true },
    asana: {
      target: { kind: "http", type: "sse", headers: { "X-Key": "${ASANA:-none}" } },
      enabled: false,
    },
    "chrome-devtools": { target: { kind: "stdio", command: "npx" } },
  });
  expect(file.problems.map(describeProblem)).toEqual([
    "/home/me/.claude.json:29:17: mcpServers.internal: cannot be imported: it gets its headers from a helper. Write the server into your own mcp.json.",
  ]);
});

test.each([
  ["D:\\work\\app", ["notion", "asana", "cased", "slashes"]],
  ["d:\\Work\\App\\", ["notion", "asana", "cased", "slashes"]],
  ["D:\\work", ["notion", "asana"]],
])("Claude Code on Windows: the entries of %s, whatever their slashes and case", async (cwd, names) => {
  const over = { platform: "win32", home: "C:\\Users\\me", cwd } as const;
  const servers = byName(read("claude-code", await fixture("claude-code.json"), [], over));
  expect(Object.keys(servers)).toEqual(names);
  expect(servers.notion?.enabled).toBe(names.length === 2);
});

test("Claude Code on Linux: a folder's case matters", async () => {
  const file = read("claude-code", await fixture("claude-code.json"), [], { cwd: "/work/App" });
  expect(Object.keys(byName(file))).toEqual(["notion", "asana"]);
});

test("Claude Desktop", async () => {
  const file = read("claude-desktop", await fixture("claude-desktop.json"));
  expect(byName(file)).toMatchObject({
    filesystem: { target: { command: "npx" } },
  });
  expect(await given(byName(file).filesystem)).toMatchObject({
    args: ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop", "~/${X}", "!"],
  });
});

test("Windsurf: serverUrl, disabled, disabledTools", async () => {
  const file = read("windsurf", await fixture("windsurf.json"));
  expect(file.problems).toEqual([]);
  expect(byName(file)).toMatchObject({
    figma: { target: { url: "https://mcp.figma.com/mcp" }, excludeTools: ["get_image"], enabled: true },
    github: { enabled: false },
  });
});

test("VS Code: servers, comments, numbers in env; one that asks for an input is named and left out", async () => {
  const file = read("vscode", await fixture("vscode.json"));
  expect(byName(file)).toMatchObject({
    playwright: {
      target: {
        env: { PORT: "3000", HOME_DIR: "/home/me", LEVEL: "${env:LEVEL:-}" },
        envFile: "/work/app/.env",
      },
    },
    github: { target: { url: "https://api.githubcopilot.com/mcp/" } },
  });
  expect(Object.keys(byName(file))).toEqual(["playwright", "github"]);
  const cannot = "cannot be imported: only its own program can fill in";
  expect(file.problems).toMatchObject(
    [
      [17, "perplexity", "cannot be imported: it asks for an ${input:...}"],
      [23, "settings", `${cannot} \${config:...}`],
      [24, "command", `${cannot} \${command:...}`],
      [25, "other-folder", `${cannot} \${workspaceFolder:...}`],
    ].map(([line, name, message]) => ({ severity: "warning", line, key: `servers.${name}`, message })),
  );
});

test("Codex: TOML with seconds, tokens and headers from variables", async () => {
  const file = read("codex", await fixture("codex.toml"));
  expect(byName(file)).toMatchObject({
    docs: {
      target: {
        kind: "stdio",
        args: ["-y", "@upstash/context7-mcp"],
        env: { MY_ENV_VAR: "MY_ENV_VALUE", SCRIPT: "echo $${X} $$env:FOO {{env:Y}" },
      },
      startupTimeoutMs: 20_000,
      requestTimeoutMs: 45_500,
      includeTools: ["query-docs"],
      excludeTools: ["slow"],
    },
    figma: {
      auth: { scheme: "auto", tokenEnv: "FIGMA_OAUTH_TOKEN" },
      target: { headers: { "X-Figma-Region": "us-east-1", "X-Team": "${FIGMA_TEAM:-}" } },
    },
    "with space": { enabled: false },
  });
  expect(file.problems).toMatchObject([{ severity: "warning", line: 31, key: "mcp_servers.wrong.command" }]);
});

/** The text that a server gets for `value` in env or args, if `X` is `filled`. Undefined: the server is left out. */
test.each<[HostName, value: string, env: string | undefined, arg?: string]>([
  ["codex", "${X} $env:X {env:X} ${env:X}", "${X} $env:X {env:X} ${env:X}"],
  ["codex", "$${X} {{env:X}", "$${X} {{env:X}"],
  ["codex", "~/x", "~/x"],
  ["codex", "~~/x", "~~/x"],
  ["codex", "!x", "!x"],
  ["codex", "!!x", "!!x"],
  ["codex", "${input:x}", "${input:x}"],
  ["claude-desktop", "${X} $env:X {env:X}", "${X} $env:X {env:X}"],
  ["claude-code", "${X} ${NO:-d} $env:X {env:X} ${env:X}", "filled d $env:X {env:X} ${env:X}"],
  ["claude-code", "${NO:-${X}}", "${X}"],
  [
    "cursor",
    "${env:X} ${X} $env:X ${workspaceFolder}${/}${userHome}",
    "filled ${X} $env:X /work/app//home/me",
  ],
  ["cursor", "${input:x}", undefined],
  ["windsurf", "${env:X} ${X} {env:X} ${workspaceFolder}", "filled ${X} {env:X} ${workspaceFolder}"],
  ["windsurf", "${file:~/.key}", undefined],
  ["vscode", "${env:X}${env:NO} ${X} $env:X ${cwd} ${unknown}", "filled ${X} $env:X /work/app ${unknown}"],
  ["vscode", "~/x", "~/x", "/home/me/x"],
  ["vscode", "$${env:X} $$${env:X}$", "$filled $$filled$"],
  ["vscode", "$${workspaceFolderBasename}{env:X}", "$app{env:X}"],
  ["opencode", "${env:X} {{env:X}}", "$filled {filled}"],
  ["claude-code", "$${X}${NO:-$}", "$filled$"],
  ["vscode", "${fileBasename}", undefined],
  ["vscode", "${env:ProgramFiles(x86)}", undefined],
  ["opencode", "{env:X}{env:NO} ${X} $env:X", "filled ${X} $env:X"],
  ["opencode", "{file:x}", undefined],
])("%s writes %s -> the server gets %s", async (host, value, env, arg = env) => {
  const entry =
    host === "opencode"
      ? { type: "local", command: ["x", value], environment: { V: value } }
      : { command: "x", args: [value], env: { V: value } };
  const text =
    host === "codex"
      ? `[mcp_servers.s]\ncommand = "x"\nargs = ['${value}']\nenv = { V = '${value}' }\n`
      : JSON.stringify({
          [{ opencode: "mcp", vscode: "servers" }[host as string] ?? "mcpServers"]: { s: entry },
        });
  const file = read(host, text);
  if (env === undefined) {
    expect(file).toMatchObject({ servers: [], problems: [{ severity: "warning" }] });
    return;
  }
  expect(file.problems).toEqual([]);
  expect(await given(byName(file).s)).toMatchObject({ args: [arg], env: { V: env } });
});

test("a folder whose name looks like a command, filled in by the editor -> the name is literal", async () => {
  const text = JSON.stringify({ servers: { s: { command: "x", args: ["${workspaceFolderBasename}"] } } });
  const [server] = read("vscode", text, [], { cwd: "/work/!exit 1 #${X}" }).servers;
  expect(await given(server)).toMatchObject({ args: ["!exit 1 #${X}"] });
});

test("Codex: broken TOML is one problem with its position", () => {
  const file = read("codex", '[mcp_servers.a]\ncommand = "x\n');
  expect(file).toMatchObject({ broken: true, servers: [], problems: [{ line: 2, column: 13 }] });
});

test.each(["opencode.jsonc", "opencode-v2.jsonc"])("OpenCode: %s", async (name) => {
  const file = read("opencode", await fixture(name));
  const expected =
    name === "opencode.jsonc"
      ? {
          everything: {
            target: {
              command: "npx",
              args: ["-y", "@modelcontextprotocol/server-everything"],
              env: { MY_ENV_VAR: "${MY_VAR:-}" },
            },
            startupTimeoutMs: 10_000,
          },
          remote: {
            enabled: false,
            oauth: false,
            target: { headers: { Authorization: "Bearer ${MY_API_KEY:-}" } },
          },
        }
      : { "my-server": { enabled: false, target: { command: "npx", args: ["-y", "example-mcp-server"] } } };
  expect(byName(file)).toMatchObject(expected);
  expect(Object.keys(byName(file))).toEqual(Object.keys(expected));
});

test("OpenCode: a file may enable a server of an earlier file", async () => {
  const { servers } = read("opencode", await fixture("opencode.jsonc"));
  const file = read("opencode", '{"mcp": {"remote": {"enabled": true}}}', servers);
  expect(byName(file)).toMatchObject({
    remote: { enabled: true, target: { url: "https://my-mcp-server.com" } },
  });
});

test("OpenCode: a file of the user that changes a key of a project's server -> still asked for", async () => {
  const project = read(
    "opencode",
    '{"mcp": {"p": {"type": "local", "command": ["x"], "enabled": false}}}',
  ).servers;
  const before = project.map((server) => ({ ...server, origin: "project-file" as const, project: true }));
  const { servers } = read("opencode", '{"mcp": {"p": {"enabled": true}}}', before);
  expect(servers).toMatchObject([{ enabled: true, origin: "project-file", project: true }]);
});

test.each(["[]", "5", '{"mcpServers": 5}', '{"mcp": []}', '{"servers": {"a": 5}}', ""])(
  "a host's file that holds %s never throws",
  (text) => {
    for (const host of ["cursor", "vscode", "opencode", "codex", "claude-code"] as const)
      expect(read(host, text).servers).toEqual([]);
  },
);
