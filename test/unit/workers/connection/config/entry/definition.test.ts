/** Owns: the keys of one server entry, and the mistakes in them. */

import { describe, expect, it, test } from "vitest";
import {
  type Origin,
  parseEntry,
  type ServerDefinition,
  transportOf,
} from "../../../../../../workers/connection/config/entry/definition.ts";
import type { Mistake } from "../../../../../../workers/connection/config/entry/mistakes.ts";
import { definition, USER } from "../support.ts";

const definitionOf = (raw: unknown): ServerDefinition => definition("s", raw);
/** The mistakes that make an entry unusable. */
const mistakesOf = (raw: unknown, name = "s"): Mistake[] => {
  const parsed = parseEntry(name, raw, USER);
  const errors = parsed.mistakes.filter(({ severity }) => severity === "error");
  expect(parsed.definition === undefined).toBe(errors.length > 0);
  return errors;
};

const STDIO = { kind: "stdio", command: "node", args: [], env: {}, cwd: undefined };
const HTTP = { kind: "http", url: "https://x.test/mcp", headers: {}, type: "http" };

describe("parseEntry: what runs", () => {
  it.each([
    [{ command: "node" }, STDIO, "stdio"],
    [{ type: "stdio", command: "node" }, STDIO, "stdio"],
    [
      { command: "node", args: ["a"], env: { A: "1" }, cwd: "/w" },
      { ...STDIO, args: ["a"], env: { A: "1" }, cwd: "/w" },
      "stdio",
    ],
    [{ url: HTTP.url }, HTTP, "http"],
    [{ type: "http", url: HTTP.url }, HTTP, "http"],
    [
      { type: "streamable-http", url: HTTP.url, headers: { a: "b" } },
      { ...HTTP, headers: { a: "b" } },
      "http",
    ],
    [{ type: "sse", url: HTTP.url }, { ...HTTP, type: "sse" }, "sse"],
    [{ type: "stdio", command: "node", url: HTTP.url }, STDIO, "stdio"],
    [{ type: "http", command: "node", url: HTTP.url }, HTTP, "http"],
  ])("%j -> %j over %s", (raw, target, transport) => {
    const definition = definitionOf(raw);
    expect(definition.target).toEqual(target);
    expect(transportOf(definition)).toBe(transport);
  });
});

describe("parseEntry: other keys", () => {
  it.each([
    [{}, true],
    [{ enabled: true }, true],
    [{ enabled: false }, false],
    [{ disabled: true }, false],
    [{ disabled: false }, true],
    [{ enabled: true, disabled: true }, true],
  ])("%j -> enabled: %s", (keys, enabled) => {
    expect(definitionOf({ command: "c", ...keys }).enabled).toBe(enabled);
  });

  it.each([
    [{}, undefined],
    [{ timeout: 2 }, 2_000],
    [{ timeout: 0.5 }, 500],
    [{ requestTimeoutMs: 70 }, 70],
    [{ timeout: 2, requestTimeoutMs: 70 }, 70],
    [{ timeout: 1e9 }, 2 ** 31 - 1],
    [{ requestTimeoutMs: 2 ** 31 }, 2 ** 31 - 1],
    [{ requestTimeoutMs: 0.25 }, 1],
  ])("%j -> requestTimeoutMs %s", (keys, requestTimeoutMs) => {
    expect(definitionOf({ command: "c", ...keys }).requestTimeoutMs).toBe(requestTimeoutMs);
  });

  it.each<[Origin, boolean]>([
    ["user", false],
    ["import", false],
    ["extension", false],
    ["project-file", true],
    ["project-pi", true],
  ])("an entry of %s with keys of others -> kept in raw, project: %s", (origin, project) => {
    const raw = { command: "c", lifecycle: "eager", x: { y: 1 } };
    const made = definition("s", raw, { file: "/mcp.json", origin });
    expect(made).toMatchObject({ name: "s", file: "/mcp.json", origin, project, raw });
  });

  test("startupTimeoutMs and description -> taken", () => {
    expect(definitionOf({ command: "c", startupTimeoutMs: 9, description: "d" })).toMatchObject({
      startupTimeoutMs: 9,
      description: "d",
    });
  });
});

/** Made up, in the form that GitHub's tokens have. */
const KEY = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

describe("parseEntry: mistakes", () => {
  it.each<[unknown, string[], RegExp]>([
    [null, [], /expected an object, found null/],
    [[], [], /expected an object, found a list/],
    ["node server.js", [], /expected an object, found a string/],
    [5, [], /expected an object, found a number/],
    [true, [], /expected an object, found a boolean/],
    [{}, [], /neither command nor url/],
    [{ args: ["a"] }, [], /neither command nor url/],
    [{ type: "stdio" }, [], /command is missing/],
    [{ type: "stdio", url: "https://x.test" }, [], /command is missing/],
    [{ type: "http" }, ["type"], /url is missing/],
    [{ type: "http", command: "node" }, ["type"], /url is missing/],
    [{ command: "node", url: "https://x.test" }, ["url"], /both command and url/],
    [{ command: "" }, ["command"], /./],
    [{ command: 5 }, ["command"], /string/],
    [{ command: ["node"] }, ["command"], /string/],
    [{ command: "c", args: "a" }, ["args"], /list/],
    [{ command: "c", args: ["a", 5] }, ["args", "1"], /string/],
    [{ command: "c", env: ["A=1"] }, ["env"], /record|object/],
    [{ command: "c", env: { PORT: 80 } }, ["env", "PORT"], /string/],
    [{ command: "c", env: { A: null } }, ["env", "A"], /string/],
    [{ command: "c", cwd: 1 }, ["cwd"], /string/],
    [{ url: "x.test/mcp" }, ["url"], /http or https URL/],
    [{ url: "ftp://x.test" }, ["url"], /http or https URL/],
    [{ url: "file:///etc/passwd" }, ["url"], /http or https URL/],
    [{ url: "" }, ["url"], /http or https URL/],
    [{ url: 5 }, ["url"], /expected a string, found a number/],
    [{ url: "https://x.test", headers: { a: 1 } }, ["headers", "a"], /string/],
    [{ url: "https://x.test", headers: "a: b" }, ["headers"], /record|object/],
    [{ type: "websocket", url: "https://x.test" }, ["type"], /stdio/],
    [
      { url: "https://x.test", bearerTokenEnv: "sk-proj-16C7e42F292c6912E771" },
      ["bearerTokenEnv"],
      /name of an env/,
    ],
    [{ url: "https://x.test", bearerTokenEnv: KEY }, ["bearerTokenEnv"], /not the token/],
    [{ command: "c", enabled: "yes" }, ["enabled"], /true or false/],
    [{ command: "c", disabled: 1 }, ["disabled"], /true or false/],
    [{ command: "c", timeout: 0 }, ["timeout"], /./],
    [{ command: "c", timeout: "5" }, ["timeout"], /number/],
    [{ command: "c", requestTimeoutMs: -1 }, ["requestTimeoutMs"], /./],
    [{ command: "c", startupTimeoutMs: null }, ["startupTimeoutMs"], /number/],
    [{ command: "c", description: {} }, ["description"], /string/],
  ])("%j -> at %j: %s", (raw, path, message) => {
    const mistakes = mistakesOf(raw);
    expect(mistakes.map((mistake) => mistake.path)).toEqual([path]);
    expect(mistakes[0]?.message).toMatch(message);
    expect(mistakes[0]?.remedy).toMatch(/\.$/);
    expect(JSON.stringify(mistakes)).not.toContain("16C7");
  });

  test("several wrong keys -> a mistake each", () => {
    const paths = mistakesOf({ command: 1, args: 2, env: 3 }).map(({ path }) => path.join("."));
    expect(paths).toEqual(["command", "args", "env"]);
  });

  it.each(["", "__proto__", "settings.identityProvider"])("the name %j -> not usable", (name) => {
    expect(mistakesOf({ command: "c" }, name)).toMatchObject([
      { path: [], message: "this is not a usable server name" },
    ]);
  });

  it.each(["constructor", "toString", "my server", "a/b", "名前"])("the name %j -> usable", (name) => {
    expect(mistakesOf({ command: "c" }, name)).toEqual([]);
  });
});

const URL = "https://x.test/mcp";
const DEFAULTS = { grantType: "authorization_code", clientRegistration: "auto" };
const PEM = "-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n";

const planOf = (keys: object): unknown => definition("s", { url: URL, ...keys }).oauth;
const oauthMistakes = (keys: object): Mistake[] => parseEntry("s", { url: URL, ...keys }, USER).mistakes;

describe("the plan of an entry", () => {
  const ALL = {
    clientId: "id",
    clientSecret: "${SECRET}",
    clientName: "Pi",
    clientUri: "https://c.test",
    logoUri: "https://c.test/logo.png",
    clientMetadataUrl: "https://c.test/client.json",
    callbackPort: 3118,
    redirectUri: "http://localhost:{port}/callback",
    scope: "read write",
    authServerMetadataUrl: "https://as.test/.well-known/oauth-authorization-server",
    issuer: "https://as.test",
    resource: "api://x",
    dpop: true,
    authorizationParams: { access_type: "offline" },
    privateKeyFile: "~/key.pem",
    keyId: "1",
    signingAlg: "ES256",
    assertionFile: "/run/token",
    grantType: "client_credentials",
    clientRegistration: "cimd",
  };

  it.each<[object, unknown]>([
    [{}, DEFAULTS],
    [{ oauth: {} }, DEFAULTS],
    [{ oauth: ALL }, ALL],
    [{ oauth: false }, false],
    [{ auth: "none" }, false],
    [{ auth: false }, false],
    [{ auth: "bearer", bearerToken: "t" }, false],
    [{ auth: "oauth" }, DEFAULTS],
    [{ auth: { provider: "p" } }, false],
    [{ oauth: { scopes: "a b" } }, { ...DEFAULTS, scope: "a b" }],
    [{ oauth: { scopes: ["a", "b"] } }, { ...DEFAULTS, scope: "a b" }],
    [{ oauth: { scope: "c", scopes: ["a"] } }, { ...DEFAULTS, scope: "c" }],
    [{ oauth: { scopes: [] } }, DEFAULTS],
    [
      { oauth: { callbackUrl: "http://127.0.0.1:1/cb" } },
      { ...DEFAULTS, redirectUri: "http://127.0.0.1:1/cb" },
    ],
    [
      { oauth: { redirectUri: "https://a.test/cb", callbackUrl: "http://127.0.0.1:1/cb" } },
      { ...DEFAULTS, redirectUri: "https://a.test/cb" },
    ],
    [
      { auth: { CLIENT_ID: "id", CLIENT_SECRET: "s", scopes: ["a", "b"] } },
      { ...DEFAULTS, clientId: "id", clientSecret: "s", scope: "a b" },
    ],
    [
      { auth: { CLIENT_ID: "id" }, oauth: { clientId: "own" } },
      { ...DEFAULTS, clientId: "own" },
    ],
    [{ oauth: { clientId: "", clientSecret: "", resource: "" } }, DEFAULTS],
    [{ oauth: { resource: false } }, { ...DEFAULTS, resource: false }],
    [{ oauth: { skipIssuerMetadataValidation: false } }, DEFAULTS],
    [{ oauth: { skipIssuerMetadataValidation: true } }, { ...DEFAULTS, skipIssuerMetadataValidation: true }],
    [{ oauth: { dpop: false } }, { ...DEFAULTS, dpop: false }],
    [{ oauth: { privateKey: PEM } }, { ...DEFAULTS, privateKey: PEM }],
    [{ oauth: { tokenStore: "x" } }, DEFAULTS],
  ])("%j -> %j", (keys, plan) => {
    expect(planOf(keys)).toEqual(plan);
  });
});

describe("values that cannot be used", () => {
  const NOT_WEB = "is not an http or https URL";
  const NOT_HTTPS = "is not an https URL";
  const NOT_ISSUER = "is not an https URL without a query";
  const NOT_REDIRECT = "is not an https URL, or an http URL on localhost or 127.0.0.1";
  const NOT_DOCUMENT = "is not an https URL with a path";
  const NOT_RESOURCE = "is not an absolute URI without a fragment";
  const ODD = "holds characters that OAuth does not allow";

  it.each<[string, unknown, string]>([
    ["clientId", "i\nd", ODD],
    ["clientId", "ïd", ODD],
    ["clientSecret", "s\u0000", ODD],
    ["keyId", "\u001b[2J", ODD],
    ["scope", 'a"b', "is not a list of rights with a space between"],
    ["scope", "a\\b", "is not a list of rights with a space between"],
    ["clientUri", "example.com", NOT_WEB],
    ["logoUri", "data:image/png;base64,", NOT_WEB],
    ["redirectUri", "localhost:1/callback", NOT_REDIRECT],
    ["redirectUri", "http://example.com/callback", NOT_REDIRECT],
    ["redirectUri", "http://127.0.0.1.evil.test/callback", NOT_REDIRECT],
    ["redirectUri", "cursor://x/callback", NOT_REDIRECT],
    ["redirectUri", "http://localhost:1/callback#a", NOT_REDIRECT],
    ["redirectUri", "http://me:secret@localhost:1/callback", NOT_REDIRECT],
    ["callbackUrl", "javascript:alert(1)", NOT_REDIRECT],
    ["clientMetadataUrl", "http://localhost/client.json", NOT_DOCUMENT],
    ["clientMetadataUrl", "https://c.test", NOT_DOCUMENT],
    ["clientMetadataUrl", "https://c.test/a#b", NOT_DOCUMENT],
    ["authServerMetadataUrl", "http://as.test/x", NOT_HTTPS],
    ["authServerMetadataUrl", "file:///etc/passwd", NOT_HTTPS],
    ["authServerMetadataUrl", "https://me:secret@as.test/x", NOT_HTTPS],
    ["issuer", "as.test", NOT_ISSUER],
    ["issuer", "http://as.test", NOT_ISSUER],
    ["issuer", "https://as.test?a=b", NOT_ISSUER],
    ["resource", "x.test/mcp", NOT_RESOURCE],
    ["resource", "https://x.test/mcp#a", NOT_RESOURCE],
    ["privateKey", "MIGHAgEAMBMG", "does not hold a private key in PEM form"],
    ["callbackPort", 70_000, "must be at most 65535"],
    ["callbackPort", "3118", "expected a number, found a string"],
    ["grantType", "password", 'expected one of "authorization_code", "client_credentials"'],
    ["resource", true, "expected a string or false, found a boolean"],
    ["signingAlg", "none", "expected one of"],
    ["authorizationParams", ["a"], "expected an object, found a list"],
  ])("oauth.%s %j -> %s", (key, value, message) => {
    const [first, ...more] = oauthMistakes({ oauth: { [key]: value } });
    expect(more).toEqual([]);
    expect(first).toMatchObject({ severity: "error", message: expect.stringContaining(message) });
    expect(first?.path[0]).toBe("oauth");
    expect(first?.path[1]).toBe(key === "callbackUrl" ? "redirectUri" : key);
    expect(first?.remedy).toMatch(/\.$/);
    expect(JSON.stringify(first)).not.toContain("secret");
  });

  it.each([
    "client_id",
    "redirect_uri",
    "response_type",
    "response_mode",
    "state",
    "code_challenge",
    "code_challenge_method",
    "dpop_jkt",
    "resource",
    "scope",
    "request",
    "request_uri",
    "Client_ID",
  ])("oauth.authorizationParams.%s -> only the sign-in itself sets it", (name) => {
    expect(
      oauthMistakes({ oauth: { authorizationParams: { access_type: "offline", [name]: "x" } } }),
    ).toMatchObject([{ severity: "error", path: ["oauth", "authorizationParams", name] }]);
  });

  it.each<[object, string[], RegExp]>([
    [{ grantType: "client_credentials" }, ["grantType"], /nothing that proves who the client is/],
    [{ grantType: "client_credentials", clientId: "a" }, ["grantType"], /nothing that proves/],
    [{ grantType: "client_credentials", clientSecret: "s" }, ["grantType"], /has no client/],
    [{ grantType: "jwt_bearer", clientId: "a", clientSecret: "s" }, ["grantType"], /has no assertion/],
    [{ grantType: "jwt_bearer", privateKeyFile: "/k" }, ["grantType"], /has no assertion/],
    [{ grantType: "identity_provider" }, ["grantType"], /identity_provider has no client/],
    [{ grantType: "identity_provider", clientSecret: "s" }, ["grantType"], /has no client/],
    [{ assertion: "${ID}", assertionFile: "/t" }, ["assertionFile"], /second assertion/],
    [{ assertion: "a.b" }, ["assertion"], /does not hold a signed assertion/],
    [{ assertion: "a.b.c\u0007" }, ["assertion"], /does not hold a signed assertion/],
    [{ assertion: `a.b.${"c".repeat(17_000)}` }, ["assertion"], /does not hold a signed assertion/],
    [{ privateKey: PEM, privateKeyFile: "/k" }, ["privateKeyFile"], /second private key/],
  ])("%j -> a mistake at %j", (oauth, path, message) => {
    const mistakes = oauthMistakes({ oauth });
    expect(mistakes).toMatchObject([{ severity: "error", path: ["oauth", ...path] }]);
    expect(mistakes[0]?.message).toMatch(message);
  });

  it.each<object>([
    { clientId: "a", clientSecret: "s" },
    { clientId: "a", privateKey: "!cat key" },
    { clientId: "a", privateKeyFile: "/k" },
    { clientMetadataUrl: "https://c.test/client.json", privateKeyFile: "/k" },
    { assertionFile: "/t" },
    { assertion: "!print-token" },
    { assertion: "${ID}" },
    { grantType: "identity_provider", clientId: "a" },
    { grantType: "identity_provider", clientMetadataUrl: "https://c.test/client.json" },
    { grantType: "jwt_bearer", assertionFile: "/t" },
    { grantType: "jwt_bearer", assertion: "a.b.c", clientId: "a", clientSecret: "s" },
  ])("client_credentials, or %j -> no mistake", (keys) => {
    expect(oauthMistakes({ oauth: { grantType: "client_credentials", ...keys } })).toEqual([]);
  });

  it.each<object>([
    { issuer: "${ISSUER}", redirectUri: "!print-uri", clientMetadataUrl: "https://${HOST}" },
    { issuer: "http://127.0.0.1:9/a", authServerMetadataUrl: "http://localhost:9/x", scope: " a  b " },
    { redirectUri: "http://[::1]:{port}/callback" },
    { resource: "urn:x:y" },
  ])("%j -> no mistake", (oauth) => {
    expect(oauthMistakes({ oauth })).toEqual([]);
  });
});

describe("keys that contradict each other", () => {
  const NONE = { auth: "none", oauth: { clientId: "a" } };
  it.each<[object, string, string[], string]>([
    [{ auth: "oauth", oauth: false }, "error", ["oauth"], 'is false beside "auth": "oauth"'],
    [{ auth: {} }, "error", ["auth"], "names no client"],
    [NONE, "warning", ["oauth"], 'has no effect with "auth": "none"'],
    [{ auth: { provider: "p" }, oauth: {} }, "warning", ["oauth"], "has no effect beside auth.provider"],
    [
      { auth: { provider: "p" }, bearerTokenEnv: "T" },
      "warning",
      ["bearerTokenEnv"],
      "has no effect beside auth.provider",
    ],
    [
      { auth: { provider: "p", CLIENT_ID: "c" } },
      "warning",
      ["auth", "CLIENT_ID"],
      "has no effect beside auth.provider",
    ],
    [
      { auth: { provider: "p" }, headers: { authorization: "a" } },
      "warning",
      ["headers", "authorization"],
      "has no effect beside auth.provider",
    ],
    [{ auth: "oauth", bearerToken: "t" }, "warning", ["bearerToken"], 'is not sent with "auth": "oauth"'],
    [{ oauth: { scope: "a", scopes: "b" } }, "warning", ["oauth", "scopes"], "has no effect beside scope"],
    [
      { oauth: { redirectUri: "https://a.test/cb", callbackUrl: "https://a.test/cb" } },
      "warning",
      ["oauth", "callbackUrl"],
      "has no effect beside redirectUri",
    ],
    [
      { oauth: { skipIssuerMetadataValidation: true } },
      "warning",
      ["oauth", "skipIssuerMetadataValidation"],
      "accepts any authorization server that the server names",
    ],
  ])("%j -> %s at %j", (keys, severity, path, message) => {
    expect(oauthMistakes(keys)).toMatchObject([{ severity, path, message }]);
  });

  test("an entry that only asks for OAuth -> no mistake", () => {
    expect(oauthMistakes({ auth: "oauth", headers: { Authorization: "Basic x" } })).toEqual([]);
  });
});

describe("the token of a provider of Pi", () => {
  const AUTH = { auth: { provider: "radius" } };
  const parse = (entry: object, origin: Origin = "user") =>
    parseEntry("s", { ...AUTH, ...entry }, { file: "/m.json", origin });

  it.each<[string, object, Origin]>([
    ["an https address", { url: "https://a.test/mcp" }, "user"],
    ["this machine", { url: "http://127.0.0.1:1/mcp" }, "user"],
    ["localhost", { url: "http://localhost/mcp" }, "user"],
    ["this machine over IPv6", { url: "http://[::1]:1/mcp" }, "user"],
    ["an address that is known at connect", { url: "http://${HOST}/mcp" }, "user"],
    ["another extension", { url: "https://a.test/mcp" }, "extension"],
  ])("%s -> its requests get it, and no OAuth begins", (_what, entry, origin) => {
    expect(parse(entry, origin)).toMatchObject({
      definition: { auth: { scheme: "provider", provider: "radius" }, oauth: false },
      mistakes: [],
    });
  });

  it.each<[string, object, Origin, string[], RegExp]>([
    ["http", { url: "http://a.test/mcp" }, "user", ["url"], /not https.+in the open/],
    [
      "a host that begins like this machine",
      { url: "http://127.0.0.1.evil.test/" },
      "user",
      ["url"],
      /not https/,
    ],
    ["a user in the address", { url: "http://localhost@evil.test/" }, "user", ["url"], /not https/],
    [
      "a project's file",
      { url: "https://a.test/mcp" },
      "project-file",
      ["auth"],
      /project's file may not send/,
    ],
    [
      "a project's .pi/mcp.json",
      { url: "https://a.test/mcp" },
      "project-pi",
      ["auth"],
      /project's file may not/,
    ],
    [
      "an empty name",
      { url: "https://a.test/mcp", auth: { provider: "" } },
      "user",
      ["auth", "provider"],
      /./,
    ],
  ])("%s -> an error, and no server", (_what, entry, origin, path, message) => {
    const { definition, mistakes } = parse(entry, origin);
    expect(definition).toBeUndefined();
    expect(mistakes).toMatchObject([{ severity: "error", path }]);
    expect(mistakes[0]?.message).toMatch(message);
  });

  test("a local server -> a warning", () => {
    const { mistakes } = parse({ command: "c" });
    expect(mistakes).toMatchObject([{ severity: "warning", path: ["auth"] }]);
  });
});
