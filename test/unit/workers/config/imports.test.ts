import { expect, test } from "vitest";
import type { ServerDefinition } from "../../../../workers/connection/config/definition.ts";
import { hostSources } from "../../../../workers/connection/config/hosts.ts";
import { type HostFile, parseHostText } from "../../../../workers/connection/config/imports.ts";
import { describeProblem } from "../../../../workers/connection/config/load.ts";
import type { HostName } from "../../../../workers/connection/config/schema.ts";
import { facts, fixture } from "./support.ts";

function read(host: HostName, text: string, before: ServerDefinition[] = []): HostFile {
  const [source] = hostSources(host, facts());
  if (!source) throw new Error("no source");
  return parseHostText(text, { host, source, facts: facts(), before });
}

const byName = ({ servers }: HostFile): Record<string, ServerDefinition> =>
  Object.fromEntries(servers.map((server) => [server.name, server]));

test("Cursor: its variables, OAuth clients, and no !command", async () => {
  const file = read("cursor", await fixture("cursor.json"));
  expect(file.problems).toEqual([]);
  expect(byName(file)).toMatchObject({
    playwright: {
      origin: "import",
      target: { kind: "stdio", command: "npx", env: { ROOT: "/work/app", PASSWORD: "!!hunter2" } },
    },
    userjot: { target: { kind: "http", headers: { Authorization: "Bearer ${env:USERJOT_API_TOKEN}" } } },
    "oauth-server": { oauth: { clientId: "id", clientSecret: "${env:SECRET}", scope: "read write" } },
  });
});

test("Claude Code: servers of the user and of this very folder", async () => {
  const file = read("claude-code", await fixture("claude-code.json"));
  expect(Object.keys(byName(file))).toEqual(["notion", "asana", "chrome-devtools"]);
  expect(byName(file)).toMatchObject({
    notion: { target: { kind: "http", url: "https://mcp.notion.com/mcp", sseOnly: false } },
    asana: { target: { kind: "http", sseOnly: true, headers: { "X-Key": "${ASANA:-none}" } } },
    "chrome-devtools": { target: { kind: "stdio", command: "npx" } },
  });
  expect(file.problems.map(describeProblem)).toEqual([
    "/home/me/.claude.json:26:17: mcpServers.internal: cannot be imported: it gets its headers from a helper. Write the server into your own mcp.json.",
  ]);
});

test("Claude Desktop", async () => {
  const file = read("claude-desktop", await fixture("claude-desktop.json"));
  expect(byName(file)).toMatchObject({
    filesystem: { target: { args: ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"] } },
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
    playwright: { target: { env: { PORT: "3000", HOME_DIR: "/home/me" } } },
    github: { target: { url: "https://api.githubcopilot.com/mcp/" } },
  });
  expect(Object.keys(byName(file))).toEqual(["playwright", "github"]);
  expect(file.problems).toMatchObject([
    {
      severity: "warning",
      line: 16,
      key: "servers.perplexity",
      message: expect.stringContaining("${input:...}"),
    },
  ]);
});

test("Codex: TOML with seconds, tokens and headers from variables", async () => {
  const file = read("codex", await fixture("codex.toml"));
  expect(byName(file)).toMatchObject({
    docs: {
      target: { kind: "stdio", args: ["-y", "@upstash/context7-mcp"], env: { MY_ENV_VAR: "MY_ENV_VALUE" } },
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
  expect(file.problems).toMatchObject([{ severity: "warning", line: 30, key: "mcp_servers.wrong.command" }]);
});

test("Codex: broken TOML is one problem with its place", () => {
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

test("OpenCode: a file may switch on a server of the file before it", async () => {
  const { servers } = read("opencode", await fixture("opencode.jsonc"));
  const file = read("opencode", '{"mcp": {"remote": {"enabled": true}}}', servers);
  expect(byName(file)).toMatchObject({
    remote: { enabled: true, target: { url: "https://my-mcp-server.com" } },
  });
});

test.each(["[]", "5", '{"mcpServers": 5}', '{"mcp": []}', '{"servers": {"a": 5}}', ""])(
  "a host's file that holds %s never throws",
  (text) => {
    for (const host of ["cursor", "vscode", "opencode", "codex", "claude-code"] as const)
      expect(read(host, text).servers).toEqual([]);
  },
);
