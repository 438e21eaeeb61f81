/** Owns: which sign-in an entry of Pi's `mcp-auth.json` holds, and what stays of the file without it. */
import { describe, expect, test } from "vitest";
import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  findEntry,
  type PiQuery,
  piKeys,
  refreshLockOf,
} from "../../../../../../workers/connection/auth/store/pi.ts";
import { inPi, metadata, PI_KEY } from "./pi-file-of-test.ts";
import { SERVER, URL_OF_SERVER } from "./support.ts";

const NOW = 1_700_000_000_000;
const QUERY: PiQuery = { server: SERVER, url: URL_OF_SERVER, nowMs: NOW };

const find = (state: unknown, query: Partial<PiQuery> = {}): SignInRecord | undefined =>
  findEntry(JSON.stringify({ [PI_KEY]: state }), { ...QUERY, ...query })?.record;

/** The entry with other discovered metadata of the authorization server. */
const discovered = (over: object, state: object = {}) =>
  inPi({
    discovery: { ...inPi().discovery, authorizationServerMetadata: { ...metadata, ...over } },
    ...state,
  });

test("an entry as Pi writes it -> the whole sign-in", () => {
  expect(find(inPi())).toEqual({
    version: 1,
    server: SERVER,
    url: URL_OF_SERVER,
    issuer: "https://auth.linear.example",
    resource: URL_OF_SERVER,
    tokenEndpoint: "https://auth.linear.example/token",
    revocationEndpoint: "https://auth.linear.example/revoke",
    client: {
      id: "registered",
      method: "none",
      kind: "dynamic",
      redirectUris: ["http://127.0.0.1:4711/callback"],
      registeredAt: 1_700_000_000_000,
    },
    access_token: "pi-access",
    token_type: "Bearer",
    refresh_token: "pi-refresh",
    expiresAt: 1_800_000_000_000,
    scope: "read",
  });
});

describe("the key", () => {
  test("a dash in the name, a url that is not normalized -> as Pi writes them", () => {
    expect(piKeys({ server: "my-server", url: "HTTPS://A.example:443/x/../mcp" })).toEqual([
      "mcp__my_server|https://a.example/mcp",
      "https://a.example/mcp",
    ]);
  });

  test("no url -> no key", () => {
    expect(piKeys({ server: "a", url: "nowhere" })).toEqual([]);
    expect(findEntry("{}", { ...QUERY, url: "nowhere" })).toBeUndefined();
  });

  test("the older key, by the url alone -> found, and removed; with both, the newer one", () => {
    const old = inPi({ tokens: { ...inPi().tokens, access_token: "old" } });
    const alone = findEntry(JSON.stringify({ [URL_OF_SERVER]: old }), QUERY);
    expect([alone?.record.access_token, alone?.rest]).toEqual(["old", "{}\n"]);
    const both = findEntry(JSON.stringify({ [URL_OF_SERVER]: old, [PI_KEY]: inPi() }), QUERY);
    expect(both?.record.access_token).toBe("pi-access");
    expect(Object.keys(JSON.parse(both?.rest ?? ""))).toEqual([URL_OF_SERVER]);
  });

  test("the lock of a refresh -> named by the key's SHA-256", () => {
    expect(refreshLockOf("mcp__a|https://a/")).toMatch(/^mcp-auth-refresh-[0-9a-f]{16}\.lock$/);
  });
});

test("what stays -> byte for byte what Pi wrote, without the entry", () => {
  const others = { before: { a: [1, null, "ü"] }, "mcp__x|https://x/": inPi() };
  const text = (states: object): string => `${JSON.stringify(states, null, 2)}\n`;
  const all = text({ before: others.before, [PI_KEY]: inPi(), "mcp__x|https://x/": inPi() });
  expect(findEntry(all, QUERY)?.rest).toBe(text(others));
});

describe("what cannot be used -> nothing", () => {
  test.each<[string, unknown]>([
    ["no object", "text"],
    ["another server's url in the entry", inPi({ serverUrl: "https://evil.example/mcp" })],
    ["no tokens, only a registration", inPi({ tokens: undefined })],
    ["expired without a refresh token", inPi({ tokens: { access_token: "a" }, tokensExpireAt: NOW - 1 })],
    ["no discovery, so that nobody knows the issuer", inPi({ discovery: undefined })],
    ["an issuer that differs", discovered({ issuer: "https://other.example" })],
    ["no client, and no client document", inPi({ clientInformation: undefined })],
    ["a token that is none", inPi({ tokens: { access_token: "a b", refresh_token: 5 } })],
  ])("%s", (_name, state) => {
    expect(find(state)).toBeUndefined();
  });

  test.each([
    ["no JSON", "{"],
    ["empty", ""],
    ["a list", "[]"],
    ["no entry", "{}"],
  ])("%s", (_name, text) => {
    expect(findEntry(text, QUERY)).toBeUndefined();
  });
});

describe("what can be used", () => {
  test.each<[string, unknown, object]>([
    [
      "an issuer with a slash more",
      discovered({ issuer: "https://auth.linear.example/" }),
      { issuer: "https://auth.linear.example/" },
    ],
    [
      "no metadata of the authorization server -> Pi's guess of the endpoint",
      inPi({ discovery: { authorizationServerUrl: "https://auth.linear.example/x" } }),
      { issuer: "https://auth.linear.example/x", tokenEndpoint: "https://auth.linear.example/token" },
    ],
    [
      "an access token without an end",
      inPi({ tokens: { access_token: "a", token_type: "bearer" }, tokensExpireAt: undefined }),
      { access_token: "a", token_type: "bearer" },
    ],
    [
      "expired with a refresh token",
      inPi({ tokensExpireAt: NOW - 1 }),
      { refresh_token: "pi-refresh", expiresAt: NOW - 1 },
    ],
  ])("%s", (_name, state, expected) => {
    expect(find(state)).toMatchObject(expected);
  });
});

describe("the client", () => {
  const secret = { client_id: "s", client_secret: "pw", client_secret_expires_at: 1_900_000_000 };
  const rows: [string, object, object, object][] = [
    [
      "a secret, no methods known -> Basic",
      {},
      { clientInformation: secret },
      { method: "client_secret_basic" },
    ],
    [
      "a secret, POST offered -> POST",
      { token_endpoint_auth_methods_supported: ["client_secret_post"] },
      { clientInformation: secret },
      { method: "client_secret_post" },
    ],
    [
      "the registered method -> that one",
      { token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"] },
      { clientInformation: { ...secret, token_endpoint_auth_method: "client_secret_post" } },
      { method: "client_secret_post" },
    ],
    [
      "a secret that expires -> when",
      {},
      { clientInformation: secret },
      { id: "s", secret: "pw", secretExpiresAt: 1_900_000_000_000 },
    ],
    [
      "none registered, documents taken, iss promised -> Pi's one document",
      { client_id_metadata_document_supported: true, authorization_response_iss_parameter_supported: true },
      { clientInformation: undefined },
      { id: "https://pi.dev/oauth/client.json", method: "none", kind: "metadata-document" },
    ],
  ];
  test.each(rows)("%s", (_name, over, state, client) => {
    const supported = { token_endpoint_auth_methods_supported: ["none"], ...over };
    const offered = "client_id_metadata_document_supported" in over ? supported : over;
    const { token_endpoint_auth_methods_supported: _none, ...bare } = metadata;
    const discovery = { ...inPi().discovery, authorizationServerMetadata: { ...bare, ...offered } };
    expect(find(inPi({ discovery, ...state }))?.client).toMatchObject(client);
  });

  test("none registered, documents taken, no iss -> Pi's document for this server", () => {
    const state = discovered(
      { client_id_metadata_document_supported: true },
      { clientInformation: undefined },
    );
    expect(find(state)?.client.id).toMatch(/^https:\/\/pi\.dev\/oauth\/[\w-]{12}\/client\.json$/);
  });

  test("one in the configuration -> that one, without a secret in the record", () => {
    const configured = (hasSecret: boolean) => find(inPi(), { client: { id: "mine", hasSecret } })?.client;
    expect(configured(false)).toEqual({ id: "mine", method: "none", kind: "configured" });
    expect(
      find(discovered({ token_endpoint_auth_methods_supported: ["client_secret_post"] }), {
        client: { id: "mine", hasSecret: true },
      })?.client,
    ).toEqual({ id: "mine", method: "client_secret_post", kind: "configured" });
  });
});
