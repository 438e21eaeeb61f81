import { describe, expect, test } from "vitest";
import { HOSTS, type HostName } from "../../../../../../src/shared/import-names.ts";
import { describeProblem } from "../../../../../../src/shared/text/failure.ts";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { inherited } from "../../../../../../workers/connection/config/entry/inherit-env.ts";
import { applyOverride } from "../../../../../../workers/connection/config/entry/override.ts";
import { DEFAULT_SETTINGS } from "../../../../../../workers/connection/config/entry/settings.ts";
import type { ConfigFacts } from "../../../../../../workers/connection/config/files/sources.ts";
import {
  type HostFile,
  hostSources,
  parseHostText,
} from "../../../../../../workers/connection/config/hosts/hosts.ts";
import { rulesOver } from "../../../../../../workers/connection/config/hosts/named-rules.ts";
import { underSettings } from "../../../../../../workers/connection/config/merge/layers.ts";
import {
  type ResolvedTarget,
  resolveOAuth,
  resolveTarget,
} from "../../../../../../workers/connection/config/values/values.ts";
import { facts, fixture } from "../support.ts";

/** A file by itself, with what it says of its servers by their names. */
function read(
  host: HostName,
  text: string,
  before: ServerDefinition[] = [],
  over: Partial<ConfigFacts> = {},
): HostFile {
  const [source] = hostSources(host, facts(over));
  if (!source) throw new Error("no source");
  const file = parseHostText(text, { host, source, facts: facts(over), before });
  const { apply } = rulesOver(file.servers, file.rules ? [file.rules] : []);
  return { ...file, servers: file.servers.map(apply) };
}

/** The values that a server really gets, with `X` set in the environment. */
async function given(server: ServerDefinition | undefined): Promise<ResolvedTarget> {
  if (!server) throw new Error("not imported");
  return resolveTarget(server, MACHINE);
}

const MACHINE = {
  env: { X: "filled" },
  home: "/home/me",
  cwd: "/work/app",
  signal: new AbortController().signal,
  onSpawn: () => undefined,
  onExit: () => undefined,
  platform: "linux",
} as const;

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

test("Gemini CLI: httpUrl, its variables, lists of tools; trust lets nothing run unasked; what it excludes is off", async () => {
  const file = read("gemini-cli", await fixture("gemini-cli.json"));
  expect(byName(file)).toMatchObject({
    git: {
      target: { args: ["mcp-server-git", "--repository", "${HOME}/x"], env: { TOKEN: "${GIT_TOKEN}" } },
      approve: undefined,
    },
    github: {
      target: {
        url: "https://api.githubcopilot.com/mcp/",
        type: "http",
        headers: { Authorization: "Bearer ${GITHUB_TOKEN}" },
      },
      requestTimeoutMs: 5_000,
      includeTools: ["get_me"],
      excludeTools: ["delete_repo"],
      description: "GitHub",
    },
    events: { target: { type: "sse" } },
    old: { enabled: false },
  });
  expect(file.problems).toMatchObject([
    { severity: "warning", key: "mcpServers.google", message: expect.stringContaining("authProviderType") },
  ]);
  const allowed = read(
    "gemini-cli",
    `{ "mcp": { "allowed": ["a"] }, "mcpServers": { "a": { "command": "a" }, "b": { "command": "b" } } }`,
  );
  expect(allowed.servers.map(({ name, enabled }) => [name, enabled])).toEqual([
    ["a", true],
    ["b", false],
  ]);
});

test("GitHub Copilot CLI: local, its variables, and its lists of tools", async () => {
  const file = read("copilot-cli", await fixture("copilot-cli.json"));
  expect(byName(file)).toMatchObject({
    github: {
      target: { kind: "stdio", env: { GITHUB_PERSONAL_ACCESS_TOKEN: "${GITHUB_TOKEN}" } },
      includeTools: undefined,
    },
    docs: {
      target: { url: "https://docs.example.com/mcp", headers: { "X-Key": "${DOCS_KEY:-none}" } },
      includeTools: ["search", "fetch"],
    },
    events: { target: { type: "sse" }, includeTools: [] },
  });
});

test("VS Code: servers, comments, numbers in env; an input becomes a variable; what only VS Code knows is named and left out", async () => {
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
  expect(Object.keys(byName(file))).toEqual(["playwright", "github", "perplexity"]);
  expect(byName(file).perplexity).toMatchObject({
    target: { env: { PERPLEXITY_API_KEY: "${PERPLEXITY_KEY}" } },
  });
  const cannot = "cannot be imported: only its own program can fill in";
  expect(file.problems).toMatchObject(
    [
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
  expect(file.problems).toMatchObject([{ severity: "warning", line: 35, key: "mcp_servers.wrong.command" }]);
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
  ["cursor", "${input:x}", "filled"],
  ["vscode", "a ${input:x}", "a filled"],
  ["vscode", "${input:1}", undefined],
  ["windsurf", "${env:X} ${X} {env:X} ${workspaceFolder}", "filled ${X} {env:X} ${workspaceFolder}"],
  ["windsurf", "${file:~/.key}", undefined],
  ["gemini-cli", "$X ${X} $Xs $x ${a b} $$X $", "filled filled $Xs $x ${a b} $filled $"],
  ["gemini-cli", "${NO:-d:-$X} ${X:-d} ${NO:-}|$x:-y", "d:-$X filled |$x:-y"],
  ["copilot-cli", "${X} ${NO:-none} $X $xs $x", "filled none filled $xs $x", "filled none $X $xs $x"],
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

test.each<[id: string, variable: string]>([
  ["path", "INPUT_PATH"],
  ["home", "INPUT_HOME"],
  ["user", "INPUT_USER"],
  ["UserName", "INPUT_USERNAME"],
  ["shell", "INPUT_SHELL"],
  ["lang", "INPUT_LANG"],
  ["hostname", "INPUT_HOSTNAME"],
  ["name", "INPUT_NAME"],
  ["node-options", "INPUT_NODE_OPTIONS"],
  ["https proxy", "INPUT_HTTPS_PROXY"],
  ["kubeconfig", "INPUT_KUBECONFIG"],
  ["db_path", "DB_PATH"],
  ["data-dir", "DATA_DIR"],
  ["node_env", "NODE_ENV"],
  ["api-key", "API_KEY"],
  ["github_user", "GITHUB_USER"],
])("VS Code and Cursor: the answer to ${input:%s} is the variable %s", async (id, variable) => {
  const env = { V: `\${input:${id}}` };
  const at = { ...MACHINE, env: { PATH: "/bin", HOME: "/home/me", [variable]: "answer" } };
  for (const [host, key] of [
    ["vscode", "servers"],
    ["cursor", "mcpServers"],
  ] as const) {
    const { s } = byName(read(host, JSON.stringify({ [key]: { s: { command: "x", env } } })));
    expect(await (s && resolveTarget(s, at))).toMatchObject({ env: { V: "answer" } });
  }
});

test("VS Code: a server in its sandbox -> in one here; a remote server needs none", () => {
  const text = JSON.stringify({
    servers: {
      yes: { command: "x", sandboxEnabled: true },
      no: { command: "x", sandboxEnabled: false },
      remote: { url: "https://x.y", sandboxEnabled: true },
    },
  });
  const file = read("vscode", text);
  expect(file.problems).toEqual([]);
  const { yes, no, remote } = byName(file);
  expect([yes?.sandbox, no?.sandbox, remote?.sandbox]).toEqual([{ network: false }, undefined, undefined]);
});

test("VS Code: on Windows, where it has no sandbox either -> the server starts without one, and that is told", () => {
  const text = '{"servers": {"s": {"command": "x", "sandboxEnabled": true}}}';
  const { servers, problems } = read("vscode", text, [], { platform: "win32" });
  expect(servers[0]?.sandbox).toBeUndefined();
  expect(problems).toMatchObject([
    { severity: "warning", key: "servers.s", message: expect.stringContaining("without a sandbox") },
  ]);
});

test.each<[where: string, entry: object, root: object, sandbox: unknown]>([
  ["the server's own", { sandbox: { filesystem: { allowWrite: ["/a"] } } }, {}, { network: false }],
  ["the whole file's", {}, { sandbox: { network: { allowedDomains: ["x.y"] } } }, true],
])(
  "VS Code: %s rules of its sandbox -> a sandbox here, and a warning that it has other rules",
  (_, entry, root, sandbox) => {
    const of = (more: object) =>
      read("vscode", JSON.stringify({ servers: { s: { command: "x", ...more, ...entry } }, ...root }));
    const { servers, problems } = of({ sandboxEnabled: true });
    expect(servers[0]?.sandbox).toEqual(sandbox);
    expect(problems).toMatchObject([
      { severity: "warning", key: "servers.s", message: expect.stringContaining("rules") },
    ]);
    expect(of({}).problems).toEqual([]);
  },
);

test("Codex: variables that it passes on -> inherited whatever the settings keep back; one that is not set is absent", async () => {
  const text = `[mcp_servers.s]
command = "x"
env_vars = ["X", { name = "NO" }, "OWN", "a b", 5]
env = { OWN = "$X" }
[mcp_servers.all]
command = "x"
env_vars = ["X"]
[mcp_servers.remote]
url = "https://x.y"
env_vars = ["X"]
`;
  const { servers, problems } = read("codex", text);
  expect(problems).toEqual([]);
  const under = (name: string, inheritEnv: boolean | string[]) => {
    const found = servers.find((server) => server.name === name);
    if (!found) throw new Error("not imported");
    return underSettings(applyOverride(found, { idleTimeout: 5 }, { file: "/mcp.json", origin: "user" }), {
      ...DEFAULT_SETTINGS,
      inheritEnv,
    });
  };
  expect(await given(under("s", false))).toMatchObject({ env: { OWN: "$X" } });
  expect(under("s", false).target).not.toHaveProperty("env.X");
  expect(under("s", false).inheritEnv).toEqual(["X", "NO", "OWN"]);
  expect(under("s", ["A_*"]).inheritEnv).toEqual(["A_*", "X", "NO", "OWN"]);
  expect(under("s", true).inheritEnv).toBeUndefined();
  expect(under("remote", false).inheritEnv).toBeUndefined();
  expect(inherited({ X: "filled", Y: "kept back" }, under("s", false).inheritEnv, "linux")).toEqual({
    X: "filled",
  });
});

test("Codex: more variables than inheritEnv takes -> the first ones", () => {
  const names = Array.from({ length: 300 }, (_, i) => `"V${i}"`);
  const { servers } = read("codex", `[mcp_servers.s]\ncommand = "x"\nenv_vars = [${names.join(", ")}]`);
  expect(servers[0]?.passesOn).toHaveLength(200);
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
      : {
          "my-server": {
            enabled: false,
            target: { command: "npx", args: ["-y", "example-mcp-server"] },
            startupTimeoutMs: 60_000,
          },
          jira: {
            oauth: {
              clientId: "id",
              clientSecret: "${JIRA_SECRET:-}",
              scope: "read",
              callbackPort: 19_999,
              redirectUri: "http://127.0.0.1:19999/mcp/oauth/callback",
            },
            startupTimeoutMs: 20_000,
            requestTimeoutMs: 600_000,
          },
        };
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

const WINDOWS = { platform: "win32", home: "C:\\Users\\me", cwd: "D:\\app" } as const;
const MAC = { platform: "darwin", home: "/Users/me", cwd: "/w" } as const;
const LINUX = { platform: "linux", home: "/home/me", cwd: "/w" } as const;

/** The user's file of each host as its maker documents it. */
const USER_FILES: Record<HostName, [linux: string, mac: string, windows: string]> = {
  cursor: ["/home/me/.cursor/mcp.json", "/Users/me/.cursor/mcp.json", "C:\\Users\\me\\.cursor\\mcp.json"],
  "claude-code": ["/home/me/.claude.json", "/Users/me/.claude.json", "C:\\Users\\me\\.claude.json"],
  "claude-desktop": [
    "/home/me/.config/Claude/claude_desktop_config.json",
    "/Users/me/Library/Application Support/Claude/claude_desktop_config.json",
    "C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json",
  ],
  codex: [
    "/home/me/.codex/config.toml",
    "/Users/me/.codex/config.toml",
    "C:\\Users\\me\\.codex\\config.toml",
  ],
  windsurf: [
    "/home/me/.codeium/windsurf/mcp_config.json",
    "/Users/me/.codeium/windsurf/mcp_config.json",
    "C:\\Users\\me\\.codeium\\windsurf\\mcp_config.json",
  ],
  vscode: [
    "/home/me/.config/Code/User/mcp.json",
    "/Users/me/Library/Application Support/Code/User/mcp.json",
    "C:\\Users\\me\\AppData\\Roaming\\Code\\User\\mcp.json",
  ],
  opencode: [
    "/home/me/.config/opencode/opencode.json",
    "/Users/me/.config/opencode/opencode.json",
    "C:\\Users\\me\\.config\\opencode\\opencode.json",
  ],
  "gemini-cli": [
    "/home/me/.gemini/settings.json",
    "/Users/me/.gemini/settings.json",
    "C:\\Users\\me\\.gemini\\settings.json",
  ],
  "copilot-cli": [
    "/home/me/.copilot/mcp-config.json",
    "/Users/me/.copilot/mcp-config.json",
    "C:\\Users\\me\\.copilot\\mcp-config.json",
  ],
};

describe("hostSources", () => {
  test.each(HOSTS)("%s has the documented path on Linux, macOS and Windows", (host) => {
    const first = [LINUX, MAC, WINDOWS].map((machine) => hostSources(host, facts(machine))[0]?.file);
    expect(first).toEqual(USER_FILES[host]);
  });

  test.each([
    ["claude-code", { CLAUDE_CONFIG_DIR: "/c" }, "/c/.claude.json"],
    ["claude-desktop", { XDG_CONFIG_HOME: "/x" }, "/x/Claude/claude_desktop_config.json"],
    ["codex", { CODEX_HOME: "/c" }, "/c/config.toml"],
    ["copilot-cli", { COPILOT_HOME: "/c" }, "/c/mcp-config.json"],
    ["vscode", { XDG_CONFIG_HOME: "/x" }, "/x/Code/User/mcp.json"],
    ["opencode", { XDG_CONFIG_HOME: "/x" }, "/x/opencode/opencode.json"],
    ["opencode", { XDG_CONFIG_HOME: "" }, "/home/me/.config/opencode/opencode.json"],
  ] as const)("%s follows %o", (host, env, file) => {
    expect(hostSources(host, facts({ ...LINUX, env }))[0]?.file).toBe(file);
  });

  test.each([
    ["claude-code", { CLAUDE_CONFIG_DIR: "/work/app/.claude" }, "/work/app/.claude/.claude.json"],
    ["codex", { CODEX_HOME: "/work/app/deep/.codex" }, "/work/app/deep/.codex/config.toml"],
    ["codex", { CODEX_HOME: ".codex" }, "/work/app/.codex/config.toml"],
    ["copilot-cli", { COPILOT_HOME: "/work/app/x/../.copilot" }, "/work/app/.copilot/mcp-config.json"],
    ["gemini-cli", { GEMINI_CLI_HOME: "/work/app" }, "/work/app/.gemini/settings.json"],
    ["opencode", { OPENCODE_CONFIG: "o.json" }, "/work/app/o.json"],
    ["opencode", { OPENCODE_CONFIG_DIR: "/work/app/oc" }, "/work/app/oc/opencode.json"],
  ] as const)(
    "%s with %o, which leads into the project -> a file of the project, and none of one that is not trusted",
    (host, env, file) => {
      const originsIn = (projectTrusted: boolean) =>
        hostSources(host, facts({ ...LINUX, cwd: "/work/app", env, projectTrusted })).flatMap((source) =>
          source.file === file ? [source.origin] : [],
        );
      expect([originsIn(true), originsIn(false)]).toEqual([["project-file"], []]);
    },
  );

  test.each([
    ["codex", "/home/me/.codex"],
    ["cursor", "/home/me/.cursor"],
    ["vscode", "/home/me/.config"],
    ["opencode", "/home/me/.config"],
  ] as const)("%s, and Pi runs in %s -> its own files there stay the user's", (host, cwd) => {
    const [first] = hostSources(host, facts({ ...LINUX, cwd, env: {} }));
    expect(first).toMatchObject({ file: expect.stringContaining(cwd), origin: "import" });
  });

  test("APPDATA moves the files of desktop programs on Windows", () => {
    const moved = facts({ ...WINDOWS, env: { APPDATA: "E:\\Data" } });
    expect(hostSources("vscode", moved)[0]?.file).toBe("E:\\Data\\Code\\User\\mcp.json");
  });

  test("OPENCODE_CONFIG is read after the user's own file", () => {
    const files = hostSources("opencode", facts({ env: { OPENCODE_CONFIG: "/o.json" } })).map(
      ({ file }) => file,
    );
    expect(files.indexOf("/o.json")).toBeGreaterThan(
      files.indexOf("/home/me/.config/opencode/opencode.json"),
    );
  });

  test("OpenCode looks upwards to the worktree's root; nearer files and .opencode folders win", () => {
    const over = { cwd: "/work/app/a/b", worktree: "/work/app", env: { OPENCODE_CONFIG_DIR: "dir" } };
    const names = (at: string): string[] => [`${at}/opencode.json`, `${at}/opencode.jsonc`];
    expect(hostSources("opencode", facts(over)).map(({ file }) => file)).toEqual(
      [
        "/home/me/.config/opencode",
        "/work/app",
        "/work/app/a",
        "/work/app/a/b",
        "/work/app/.opencode",
        "/work/app/a/.opencode",
        "/work/app/a/b/.opencode",
        "/home/me/.opencode",
        "/work/app/a/b/dir",
      ].flatMap(names),
    );
  });

  test.each([undefined, "/elsewhere"])(
    "OpenCode outside of a worktree (%s) -> this folder only",
    (worktree) => {
      const files = hostSources("opencode", facts({ worktree })).map(({ file }) => file);
      expect(files.filter((file) => file.startsWith("/work"))).toHaveLength(4);
    },
  );

  test("OpenCode in the home folder -> its .opencode is the project's, which needs consent", () => {
    const sources = hostSources("opencode", facts({ cwd: "/home/me" }));
    expect(sources.filter(({ file }) => file.startsWith("/home/me/.opencode"))).toMatchObject([
      { origin: "project-file" },
      { origin: "project-file" },
    ]);
  });

  test("a relative OPENCODE_CONFIG starts from the session's folder", () => {
    const sources = hostSources("opencode", facts({ env: { OPENCODE_CONFIG: "o.json" } }));
    expect(sources[2]).toMatchObject({ file: "/work/app/o.json", origin: "project-file" });
  });

  test.each(HOSTS)("%s: a project's files need consent, and none is read without trust", (host) => {
    const sources = hostSources(host, facts());
    for (const { file, origin } of sources)
      expect(origin).toBe(file.startsWith("/work/app") ? "project-file" : "import");
    const untrusted = hostSources(host, facts({ projectTrusted: false }));
    expect(untrusted.filter(({ file }) => file.startsWith("/work/app"))).toEqual([]);
  });
});

const DEFAULTS = { grantType: "authorization_code", clientRegistration: "auto" };
const URL = { url: "https://x.test/mcp" };

const ROOTS: Partial<Record<HostName, string>> = { vscode: "servers", opencode: "mcp" };

const json = (host: HostName, entry: object): string =>
  JSON.stringify({ [ROOTS[host] ?? "mcpServers"]: { s: { ...URL, ...entry } } });

test.each<[HostName, object, object]>([
  ["cursor", {}, {}],
  [
    "cursor",
    { auth: { CLIENT_ID: "id", CLIENT_SECRET: "s", scopes: ["a", "b"] } },
    { clientId: "id", clientSecret: "s", scope: "a b" },
  ],
  ["windsurf", { oauth: { clientId: "id", clientSecret: "s" } }, { clientId: "id", clientSecret: "s" }],
  // Claude Code listens on localhost, not on 127.0.0.1.
  [
    "claude-code",
    { oauth: { clientId: "id", callbackPort: 3118 } },
    { clientId: "id", callbackPort: 3118, redirectUri: "http://localhost:3118/callback" },
  ],
  [
    "claude-code",
    { oauth: { clientId: "id" } },
    { clientId: "id", redirectUri: "http://localhost:{port}/callback" },
  ],
  [
    "claude-code",
    { oauth: { callbackPort: 8 } },
    { callbackPort: 8, redirectUri: "http://localhost:8/callback" },
  ],
  [
    "claude-code",
    { oauth: { scopes: "a b", authServerMetadataUrl: "https://as.test/m" } },
    { scope: "a b", authServerMetadataUrl: "https://as.test/m" },
  ],
  ["vscode", { oauth: { clientId: "id" } }, { clientId: "id", redirectUri: "http://127.0.0.1:33418/" }],
  ["opencode", { oauth: { scope: "a" } }, { scope: "a" }],
  [
    "opencode",
    { oauth: { clientId: "id", clientSecret: "s" } },
    { clientId: "id", clientSecret: "s", redirectUri: "http://127.0.0.1:19876/mcp/oauth/callback" },
  ],
  [
    "opencode",
    { oauth: { clientId: "id", redirectUri: "http://127.0.0.1:3118/x" } },
    { clientId: "id", redirectUri: "http://127.0.0.1:3118/x" },
  ],
  [
    "opencode",
    { oauth: { callbackPort: 5 } },
    { callbackPort: 5, redirectUri: "http://127.0.0.1:5/mcp/oauth/callback" },
  ],
])("%s: %j -> %j", (host, entry, keys) => {
  const { servers, problems } = read(host, json(host, entry));
  expect(problems).toEqual([]);
  expect(servers[0]?.oauth).toEqual({ ...DEFAULTS, ...keys });
});

test("OpenCode's oauth false -> no sign-in", () => {
  expect(read("opencode", json("opencode", { oauth: false })).servers[0]?.oauth).toBe(false);
});

const SERVER = '[mcp_servers.s]\nurl = "https://x.test/mcp"\n';
test.each<[string, object]>([
  [SERVER, {}],
  [
    `${SERVER}scopes = ["a", "b"]\noauth_resource = "https://r.test"`,
    { scope: "a b", resource: "https://r.test" },
  ],
  [`${SERVER}[mcp_servers.s.oauth]\nclient_id = "id"`, { clientId: "id" }],
  [`mcp_oauth_callback_port = 4321\n${SERVER}`, { callbackPort: 4321 }],
  [
    `mcp_oauth_callback_port = 4321\nmcp_oauth_callback_url = "http://localhost:4321/callback"\n${SERVER}`,
    { callbackPort: 4321, redirectUri: "http://localhost:4321/callback" },
  ],
  [
    `mcp_oauth_callback_url = "http://localhost:1/a"\n${SERVER}[mcp_servers.s.oauth]\ncallback_url = "http://127.0.0.1/b"`,
    { redirectUri: "http://127.0.0.1:{port}/b" },
  ],
  [`mcp_oauth_callback_port = 4321\n[mcp_servers.s]\ncommand = "x"`, {}],
])("Codex: %j -> %j", (text, keys) => {
  const { servers, problems } = read("codex", text);
  expect(problems).toEqual([]);
  expect(servers[0]?.oauth).toEqual({ ...DEFAULTS, ...keys });
});

test.each<[HostName, object, object]>([
  [
    "cursor",
    { auth: { CLIENT_ID: "${X}", CLIENT_SECRET: "${env:X}" } },
    { clientId: "${X}", clientSecret: "filled" },
  ],
  ["claude-code", { oauth: { clientId: "${X}", scopes: "!a" } }, { clientId: "filled", scope: "!a" }],
  ["vscode", { oauth: { clientId: "!${env:X}" } }, { clientId: "!filled" }],
  [
    "opencode",
    { oauth: { clientId: "{env:X}", clientSecret: "$env:X" } },
    { clientId: "filled", clientSecret: "$env:X" },
  ],
])("%s: %j -> the sign-in gets %j", async (host, entry, keys) => {
  const [server] = read(host, json(host, entry)).servers;
  if (!server) throw new Error("not imported");
  expect(await resolveOAuth(server, MACHINE)).toMatchObject(keys);
});

test.each<[HostName, object, string]>([
  ["vscode", { oauth: { clientId: "${input:1}" } }, "it asks for an ${input:...}"],
  [
    "cursor",
    { auth: { CLIENT_ID: "a", CLIENT_SECRET: "${config:s}" } },
    "only its own program can fill in ${config:...}",
  ],
])("%s: %j -> left out: %s", (host, entry, reason) => {
  const { servers, problems } = read(host, json(host, entry));
  expect(servers).toEqual([]);
  expect(problems[0]?.message).toBe(`cannot be imported: ${reason}`);
});

test.each<[HostName, object]>([
  ["claude-code", { oauth: { clientId: { toString: 1 }, callbackPort: {} } }],
  ["cursor", { auth: { CLIENT_ID: 5 } }],
  ["opencode", { oauth: { callbackPort: "x/../../" } }],
  ["vscode", { oauth: { clientId: [] } }],
  ["claude-code", { oauth: { callbackPort: { toString: 1 } } }],
  ["claude-code", { oauth: { scopes: [{ toString: 1 }] } }],
])("%s: %j -> left out with a warning", (host, entry) => {
  expect(read(host, json(host, entry))).toMatchObject({
    servers: [],
    problems: [{ severity: "warning" }],
  });
});
