/** Owns: the OAuth clients of other programs, which mean here what they mean there. */
import { expect, test } from "vitest";
import type { HostName } from "../../../../../../workers/connection/config/entry/schema.ts";
import { hostSources, parseHostText } from "../../../../../../workers/connection/config/hosts/hosts.ts";
import { resolveOAuth } from "../../../../../../workers/connection/config/values/values.ts";
import { facts } from "../support.ts";

const DEFAULTS = { grantType: "authorization_code", clientRegistration: "auto" };
const URL = { url: "https://x.test/mcp" };

const ROOTS: Partial<Record<HostName, string>> = { vscode: "servers", opencode: "mcp" };

function read(host: HostName, text: string) {
  const [source] = hostSources(host, facts());
  if (!source) throw new Error("no source");
  return parseHostText(text, { host, source, facts: facts(), before: [] });
}

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
  const plan = await resolveOAuth(server, {
    env: { X: "filled" },
    home: "/home/me",
    cwd: "/work/app",
    signal: new AbortController().signal,
    onSpawn: () => undefined,
    onExit: () => undefined,
    platform: "linux",
  });
  expect(plan).toMatchObject(keys);
});

test.each<[HostName, object, string]>([
  ["vscode", { oauth: { clientId: "${input:id}" } }, "it asks for an ${input:...}"],
  ["cursor", { auth: { CLIENT_ID: "a", CLIENT_SECRET: "${input:s}" } }, "it asks for an ${input:...}"],
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
  expect(read(host, json(host, entry))).toMatchObject({ servers: [], problems: [{ severity: "warning" }] });
});
