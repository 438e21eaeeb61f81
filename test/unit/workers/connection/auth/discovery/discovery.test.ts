/** Owns: which authorization server is found, and the oddities of real ones, with real servers on loopback. */

import { describe, expect, test } from "vitest";
import { movedTo, offersSignIn } from "../../../../../../workers/connection/auth/discovery/discovery.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { type AuthServer, authServer, type Route, requestsFor } from "../requests/support.ts";
import {
  challenged,
  found,
  metadataOf,
  naming,
  OAUTH,
  OPENID,
  RESOURCE,
  refused,
  status,
} from "./support.ts";

describe("metadata of the authorization server", () => {
  const ORDER: [path: string, at: string, asked: string[]][] = [
    ["", OAUTH, [OAUTH]],
    ["", OPENID, [OAUTH, OPENID]],
    ["/realms/one", `${OAUTH}/realms/one`, [`${OAUTH}/realms/one`]],
    ["/realms/one", `${OPENID}/realms/one`, [`${OAUTH}/realms/one`, `${OPENID}/realms/one`]],
    [
      "/realms/one",
      `/realms/one${OPENID}`,
      [`${OAUTH}/realms/one`, `${OPENID}/realms/one`, `/realms/one${OPENID}`],
    ],
  ];
  test.each(ORDER)(
    "an issuer with the path '%s' and metadata at %s -> asked in order",
    async (path, at, addresses) => {
      const as = await authServer((origin) => ({ [at]: metadataOf(`${origin}${path}`) }));
      expect((await found(await naming(`${as.origin}${path}`))).issuer).toBe(`${as.origin}${path}`);
      expect(as.log).toEqual(addresses.map((address) => `GET ${address}`));
    },
  );

  test.each([
    ["a web page", "<html>"],
    ["JSON without an issuer", { message: "hello" }],
    ["text that is not JSON", status(200, "{", { "content-type": "application/json" })],
    ["a redirect to another server", status(307, "", { location: "https://login.example.com/" })],
  ] satisfies [string, Route][])("%s at the first address -> the next one is asked", async (_name, route) => {
    const as = await authServer((origin) => ({ [OAUTH]: route, [OPENID]: metadataOf(origin) }));
    expect((await found(await naming(as.origin))).issuer).toBe(as.origin);
  });

  test.each([
    ["500", 500, "unavailable"],
    ["a reset", (response) => response.socket?.resetAndDestroy(), "unreachable"],
  ] satisfies [string, Route, string][])(
    "%s at the first address -> told, and no other is asked",
    async (_name, route, kind) => {
      const as = await authServer((origin) => ({ [OAUTH]: route, [OPENID]: metadataOf(origin) }));
      expect((await refused(await naming(as.origin))).kind).toBe(kind);
      expect(as.log).toHaveLength(1);
    },
  );

  test("no metadata at all -> told, and no endpoint is guessed", async () => {
    const as = await authServer();
    expect(await refused(await naming(as.origin))).toEqual({
      kind: "bad-answer",
      facts: { url: `${as.origin}/`, what: "it holds no metadata of an authorization server" },
    });
  });

  test("web pages only -> told as such", async () => {
    const as = await authServer(() => ({ [OAUTH]: "<html>", [OPENID]: "<html>" }));
    expect((await refused(await naming(as.origin))).facts).toEqual({
      url: `${as.origin}${OAUTH}`,
      what: "HTML in the place of JSON",
    });
  });

  test.each([
    ["http://as.example.com", "not-https"],
    ["https://me:secret@as.example.com", "bad-answer"],
    ["https://as.example.com?p=policy", "bad-answer"],
    ["https://as.example.com/#a", "bad-answer"],
    ["as.example.com", "bad-answer"],
  ])("the issuer %s -> %s, and nothing is asked", async (issuer, kind) => {
    const problem = await refused(await naming(issuer));
    expect(problem.kind).toBe(kind);
    expect(JSON.stringify(problem.facts)).not.toMatch(/secret|policy/);
  });

  test("a name that leads to a private network -> private-address", async () => {
    const url = new URL("https://mcp.example.com/mcp");
    const addresses: Record<string, string> = {
      "mcp.example.com": "93.184.216.34",
      "as.example.com": "10.0.0.1",
    };
    const resolve = async (host: string) => [{ address: addresses[host] ?? "", family: 4 }];
    const { fetch } = requestsFor(url.href, { resolve });
    const document = { resource: url.href, authorization_servers: ["https://as.example.com"] };
    const requests = {
      fetch: async (...request: Parameters<typeof fetch>) =>
        request[0].includes("protected-resource") ? Response.json(document) : fetch(...request),
    };
    const { origin } = await authServer();
    expect(await refused({ origin } as AuthServer, { url, requests })).toEqual({
      kind: "private-address",
      facts: { url: `https://as.example.com${OAUTH}` },
    });
  });
});

describe("MCP 2025-03-26", () => {
  test("no metadata of the resource -> the metadata of the origin, and no resource", async () => {
    const server = await authServer((origin) => ({
      [OAUTH]: metadataOf(origin, { token_endpoint: `${origin}/t` }),
    }));
    const { issuer, resource, metadata } = await found(server);
    expect({ issuer, resource, token: metadata.token_endpoint }).toEqual({
      issuer: server.origin,
      token: `${server.origin}/t`,
    });
    expect(server.log).toEqual([`GET ${RESOURCE}/mcp`, `GET ${RESOURCE}`, `GET ${OAUTH}`]);
  });

  const PAGES = { "/authorize": status(400, "no client_id") };

  test("no metadata at all -> the default endpoints, with a note", async () => {
    const server = await authServer(() => PAGES);
    const { resource, metadata, notes } = await found(server);
    expect(resource).toBeUndefined();
    expect(metadata).toMatchObject({
      issuer: server.origin,
      authorization_endpoint: `${server.origin}/authorize`,
      token_endpoint: `${server.origin}/token`,
      registration_endpoint: `${server.origin}/register`,
    });
    expect(notes).toEqual([expect.stringContaining("are guessed")]);
  });

  test("a configured resource -> sent", async () => {
    const server = await authServer((origin) => ({ [OAUTH]: metadataOf(origin) }));
    expect((await found(server, { plan: { resource: "https://a.com" } })).resource).toBe("https://a.com");
  });

  test.each([
    ["trouble", 503, "unavailable"],
    ["a web page", "<html>", "no-sign-in"],
    [
      "a redirect to another server",
      status(302, "", { location: "https://login.example.com/" }),
      "no-sign-in",
    ],
  ] satisfies [string, Route, string][])(
    "the metadata of the origin are %s -> told, and nothing is guessed",
    async (_name, route, kind) => {
      expect((await refused(await authServer(() => ({ ...PAGES, [OAUTH]: route })))).kind).toBe(kind);
    },
  );

  test("the challenge names metadata that are a web page -> their mistake is told", async () => {
    const server = await authServer(() => ({ ...PAGES, "/meta": "<html>" }));
    const { kind, facts } = await refused(server, challenged(`${server.origin}/meta`));
    expect({ kind, facts }).toEqual({
      kind: "bad-answer",
      facts: { url: `${server.origin}/meta`, what: "HTML in the place of JSON" },
    });
  });

  test.each([200, 302, 400, 422, 500])("the page of a sign-in answers %i -> it is there", async (code) => {
    const server = await authServer(() => ({
      "/authorize": status(code, "", { location: "https://login.example.com/" }),
    }));
    expect((await found(server)).foundAt).toBe(`${server.origin}/`);
  });

  test.each([401, 403, 404, 405, 410])(
    "the page of a sign-in answers %i -> no sign-in, unless the configuration names a client or a machine",
    async (code) => {
      const server = await authServer(() => ({ "/authorize": status(code) }));
      expect(await refused(server)).toEqual({ kind: "no-sign-in", facts: {} });
      expect(server.log.filter((line) => !line.startsWith("GET "))).toEqual([]);
      for (const plan of [{ clientId: "c" }, { grantType: "client_credentials" } as const])
        expect((await found(server, { plan })).foundAt).toBe(`${server.origin}/`);
    },
  );

  test("web pages in the place of the resource's metadata -> the origin's metadata, but nothing is guessed", async () => {
    const pages = { [`${RESOURCE}/mcp`]: "<html>", [RESOURCE]: "<html>" };
    const server = await authServer((origin) => ({ ...pages, [OAUTH]: metadataOf(origin) }));
    expect((await found(server)).foundAt).toBe(`${server.origin}${OAUTH}`);
    const without = await authServer(() => pages);
    expect((await refused(without)).facts).toEqual({
      url: `${without.origin}${RESOURCE}/mcp`,
      what: "HTML in the place of JSON",
    });
  });

  test("an issuer that differs -> refused; a configured issuer that is not the origin -> refused", async () => {
    const server = await authServer((origin) => ({ [OAUTH]: metadataOf(`${origin}/oauth`) }));
    expect((await refused(server)).kind).toBe("issuer-differs");
    const plan = { issuer: "https://as.example.com" };
    expect((await refused(await authServer(() => PAGES), { plan })).kind).toBe("issuer-differs");
  });
});

describe("a configured address of the metadata", () => {
  test("metadata there -> used, whatever their issuer, and nothing else is asked", async () => {
    const as = await authServer(() => ({ "/custom": metadataOf("https://auth.example.com") }));
    const server = await naming("https://evil.example.com");
    const plan = { authServerMetadataUrl: `${as.origin}/custom` };
    const { issuer, resource } = await found(server, { plan });
    expect({ issuer, resource }).toEqual({ issuer: "https://auth.example.com" });
    expect(server.log).toEqual([]);
    expect(as.log).toEqual(["GET /custom"]);
  });

  test("another issuer than the configured one -> refused", async () => {
    const as = await authServer(() => ({ "/custom": metadataOf("https://auth.example.com") }));
    const plan = { authServerMetadataUrl: `${as.origin}/custom`, issuer: "https://as.example.com" };
    expect((await refused(as, { plan })).kind).toBe("issuer-differs");
  });

  test.each([
    ["nothing", 404],
    ["a web page", "<html>"],
    ["JSON without an issuer", {}],
  ] satisfies [string, Route][])("%s there -> told, and nothing else is asked", async (_name, route) => {
    const as = await authServer((origin) => ({ "/custom": route, [OAUTH]: metadataOf(origin) }));
    const plan = { authServerMetadataUrl: `${as.origin}/custom` };
    expect((await refused(as, { plan })).kind).toBe("bad-answer");
    expect(as.log).toEqual(["GET /custom"]);
  });
});

describe("machines", () => {
  test("metadata without an authorization endpoint and PKCE -> found", async () => {
    const as = await authServer((origin) => ({
      [OAUTH]: { issuer: origin, token_endpoint: `${origin}/token` },
    }));
    const { metadata, notes } = await found(await naming(as.origin), {
      plan: { grantType: "client_credentials" },
    });
    expect(metadata.token_endpoint).toBe(`${as.origin}/token`);
    expect(notes).toEqual([]);
  });
});

describe("protected resource metadata", () => {
  const as = (): Promise<AuthServer> => authServer((origin) => ({ [OAUTH]: metadataOf(origin) }));
  const at = async (path: string, route?: (document: object) => Route): Promise<AuthServer> => {
    const { origin: issuer } = await as();
    return authServer((origin) => {
      const document = { resource: `${origin}/mcp`, authorization_servers: [issuer] };
      return { [path]: route?.(document) ?? document };
    });
  };

  test("a challenge names the address -> only that is asked", async () => {
    const server = await at("/custom/metadata.json");
    const { resource } = await found(server, challenged(`${server.origin}/custom/metadata.json`));
    expect(resource).toBe(`${server.origin}/mcp`);
    expect(server.log).toEqual(["GET /custom/metadata.json"]);
  });

  test("a challenge names only a path -> that path of the server", async () => {
    const server = await at("/custom");
    await found(server, challenged("/custom"));
    expect(server.log).toEqual(["GET /custom"]);
  });

  test.each([
    ["nothing", {}],
    ["an address where nothing is", { challenge: { scheme: "Bearer", resourceMetadata: "/gone" } }],
    ["http", { challenge: { scheme: "Bearer", resourceMetadata: "http://mcp.example.com/x" } }],
    ["no address", { challenge: { scheme: "Bearer", resourceMetadata: "http://" } }],
  ])("a challenge names %s -> the address for the path is asked", async (_name, wanted) => {
    const server = await at(`${RESOURCE}/mcp`);
    expect((await found(server, wanted)).resource).toBe(`${server.origin}/mcp`);
    expect(server.log.at(-1)).toBe(`GET ${RESOURCE}/mcp`);
  });

  test("a challenge names a private address of a public server -> refused, and nothing else is asked", async () => {
    const { origin } = await at(RESOURCE);
    const url = new URL("https://mcp.example.com/mcp");
    const resolve = async () => [{ address: "93.184.216.34", family: 4 }];
    const requests = requestsFor(url.href, { resolve });
    const wanted = { ...challenged("https://10.0.0.1/x"), url, requests };
    expect((await refused({ origin } as AuthServer, wanted)).kind).toBe("private-address");
  });

  test("nothing for the path -> the root is asked", async () => {
    const server = await at(RESOURCE);
    await found(server);
    expect(server.log).toEqual([`GET ${RESOURCE}/mcp`, `GET ${RESOURCE}`]);
  });

  test.each([
    ["404", 404],
    ["401", 401],
    ["403", 403],
    ["405", 405],
    ["410", 410],
    ["a web page", "<!doctype html>"],
    ["other JSON", { message: "Not Found" }],
    ["an error under 200", { error: "not_found" }],
    ["a list", status(200, "[]")],
    ["no content", 204],
    ["a redirect to another server", status(302, "", { location: "https://login.example.com/" })],
  ] satisfies [string, Route][])("%s for the path -> the root is asked", async (_name, route) => {
    const { origin: issuer } = await as();
    const server = await authServer((origin) => ({
      [`${RESOURCE}/mcp`]: route,
      [RESOURCE]: { resource: origin, authorization_servers: [issuer] },
    }));
    expect((await found(server)).resource).toBe(server.origin);
  });

  test.each([500, 502, 503, 408, 429])(
    "%i for the path -> unavailable, and nothing else is asked",
    async (code) => {
      const server = await at(`${RESOURCE}/mcp`, () =>
        status(code, "<!doctype html>", { "content-type": "text/html" }),
      );
      expect(await refused(server)).toEqual({
        kind: "unavailable",
        facts: { url: `${server.origin}${RESOURCE}/mcp`, status: code },
      });
      expect(server.log).toHaveLength(1);
    },
  );

  test("a reset connection -> unreachable, and nothing else is asked", async () => {
    const server = await at(`${RESOURCE}/mcp`, () => (response) => response.socket?.resetAndDestroy());
    expect((await refused(server)).kind).toBe("unreachable");
    expect(server.log).toHaveLength(1);
  });

  test("a server that never answers -> unreachable after the limit", async () => {
    const server = await at(`${RESOURCE}/mcp`, () => () => undefined);
    const requests = requestsFor(server.origin, { limits: { bytes: 1_024, ms: 100 } });
    expect((await refused(server, { requests })).kind).toBe("unreachable");
  });

  test("metadata of a megabyte -> refused", async () => {
    const server = await at(`${RESOURCE}/mcp`, (document) => ({ ...document, x: "x".repeat(1_024 * 1_024) }));
    expect(await refused(server)).toMatchObject({ kind: "bad-answer", facts: { what: "more than 256 KB" } });
  });

  test("scopes -> bounded and clean", async () => {
    const scopes_supported = ["read", "a b", null, 7, "\u001b[2J", "x".repeat(300), "write"];
    const server = await at(`${RESOURCE}/mcp`, (document) => ({ ...document, scopes_supported }));
    expect((await found(server)).resourceScopes).toEqual(["read", "write"]);
  });

  test("no resource in the metadata -> the endpoint is the resource", async () => {
    const server = await at(`${RESOURCE}/mcp`, (document) => ({ ...document, resource: null }));
    const url = new URL(`${server.origin}/mcp#part`);
    expect((await found(server, { url })).resource).toBe(`${server.origin}/mcp`);
  });

  test("no authorization server in the metadata -> the server's own origin, which must have metadata", async () => {
    const server = await authServer((origin) => ({
      [`${RESOURCE}/mcp`]: { resource: `${origin}/mcp` },
      [OAUTH]: metadataOf(origin),
    }));
    const { issuer, resource, notes } = await found(server);
    expect({ issuer, resource }).toEqual({ issuer: server.origin, resource: `${server.origin}/mcp` });
    expect(notes).toEqual([expect.stringContaining("names no authorization server")]);
    const without = await authServer((origin) => ({ [`${RESOURCE}/mcp`]: { resource: `${origin}/mcp` } }));
    expect((await refused(without)).kind).toBe("bad-answer");
  });
});

describe("the resource", () => {
  const other = { resource: "https://other.example.com/mcp" };
  const server = async (more: object): Promise<AuthServer> => {
    const { origin } = await authServer((issuer) => ({ [OAUTH]: metadataOf(issuer) }));
    return naming(origin, more);
  };

  test("of another origin -> resource-differs, and no authorization server is asked", async () => {
    const { origin, log } = await server(other);
    expect(await refused({ origin } as AuthServer)).toEqual({
      kind: "resource-differs",
      facts: { expected: `${origin}/mcp`, found: other.resource },
    });
    expect(log).toHaveLength(1);
  });

  test("configured -> that is sent, whatever the server says", async () => {
    expect((await found(await server(other), { plan: { resource: "api://app" } })).resource).toBe(
      "api://app",
    );
  });

  test("switched off -> none is sent, whatever the server says", async () => {
    expect((await found(await server(other), { plan: { resource: false } })).resource).toBeUndefined();
  });

  test("with a slash at its end -> sent as it is written", async () => {
    const { origin } = await authServer((issuer) => ({ [OAUTH]: metadataOf(issuer) }));
    const slash = await authServer((own) => ({
      [`${RESOURCE}/mcp`]: { resource: `${own}/`, authorization_servers: [origin] },
    }));
    expect((await found(slash)).resource).toBe(`${slash.origin}/`);
  });
});

describe("oddities of real authorization servers", () => {
  test("Atlassian: the issuer differs -> refused with both names", async () => {
    const as = await authServer(() => ({ [OAUTH]: metadataOf("https://auth.example.com") }));
    expect(await refused(await naming(as.origin))).toEqual({
      kind: "issuer-differs",
      facts: { expected: as.origin, found: "https://auth.example.com" },
    });
  });

  test.each([
    ["configured", { plan: { issuer: "https://auth.example.com" } }],
    ["accepted by the user", { acceptedIssuer: "https://auth.example.com" }],
    ["one of any", { plan: { skipIssuerMetadataValidation: true as const } }],
  ])("Atlassian: an issuer that differs and is %s -> accepted, with a note", async (_name, wanted) => {
    const as = await authServer(() => ({ [OAUTH]: metadataOf("https://auth.example.com") }));
    const { issuer, acceptedIssuer, notes } = await found(await naming(as.origin), wanted);
    expect([issuer, acceptedIssuer]).toEqual(["https://auth.example.com", "https://auth.example.com"]);
    expect(notes).toEqual([expect.stringContaining("https://auth.example.com")]);
  });

  test("Google: a slash at the end of one name -> accepted; the issuer is as the metadata write it", async () => {
    const as = await authServer((origin) => ({ [OAUTH]: metadataOf(origin) }));
    const { issuer, acceptedIssuer } = await found(await naming(`${as.origin}/`));
    expect([issuer, acceptedIssuer]).toEqual([as.origin, undefined]);
  });

  test("Entra: no PKCE advertised -> accepted with one note", async () => {
    const as = await authServer((origin) => ({
      [OAUTH]: metadataOf(origin, { code_challenge_methods_supported: undefined }),
    }));
    const { notes } = await found(await naming(as.origin));
    expect(notes).toEqual([expect.stringContaining("PKCE")]);
  });

  test("Entra: a placeholder in the issuer -> refused, and accepted if it is configured as it is", async () => {
    const issuer = "https://login.example.com/{tenantid}/v2.0";
    const as = await authServer(() => ({ [`/common/v2.0${OPENID}`]: metadataOf(issuer) }));
    const server = await naming(`${as.origin}/common/v2.0`);
    const endpoints = { plan: { issuer } };
    expect((await refused(server)).kind).toBe("issuer-differs");
    expect((await refused(server, { plan: { issuer: "https://login.example.com" } })).kind).toBe(
      "issuer-differs",
    );
    expect((await found(server, endpoints)).issuer).toBe(issuer);
  });

  test("null fields, truth as a text, a list as a text -> read as they are meant", async () => {
    const odd = {
      scopes_supported: null,
      registration_endpoint: null,
      revocation_endpoint: "",
      authorization_response_iss_parameter_supported: "true",
      code_challenge_methods_supported: "S256 plain",
    };
    const as = await authServer((origin) => ({ [OAUTH]: metadataOf(origin, odd) }));
    const { metadata, notes } = await found(await naming(as.origin));
    expect(metadata).toEqual({
      issuer: as.origin,
      authorization_endpoint: `${as.origin}/authorize`,
      token_endpoint: `${as.origin}/token`,
      authorization_response_iss_parameter_supported: true,
      code_challenge_methods_supported: ["S256", "plain"],
    });
    expect(notes).toEqual([]);
  });
});

describe("several authorization servers", () => {
  const good = (): Promise<AuthServer> => authServer((origin) => ({ [OAUTH]: metadataOf(origin) }));
  const several = (...issuers: string[]): Promise<AuthServer> =>
    naming("", { authorization_servers: issuers });

  test("the first can be used -> the first, with a note", async () => {
    const [a, b] = [await good(), await good()];
    const { issuer, notes } = await found(await several(a.origin, b.origin));
    expect(issuer).toBe(a.origin);
    expect(notes).toEqual([`names 2 authorization servers: ${a.origin} is used`]);
    expect(b.log).toEqual([]);
  });

  test("the first has no metadata, the second calls itself something else -> the third", async () => {
    const [none, c] = [await authServer(), await good()];
    const other = await authServer(() => ({ [OAUTH]: metadataOf("https://other.example.com") }));
    expect((await found(await several(none.origin, other.origin, c.origin))).issuer).toBe(c.origin);
  });

  test("the configured one is the second -> the second", async () => {
    const [a, b] = [await good(), await good()];
    expect((await found(await several(a.origin, b.origin), { plan: { issuer: b.origin } })).issuer).toBe(
      b.origin,
    );
    expect(a.log).toEqual([]);
  });

  test("none can be used -> the problem of the first", async () => {
    const other = await authServer(() => ({ [OAUTH]: metadataOf("https://other.example.com") }));
    const none = await authServer();
    expect((await refused(await several(other.origin, none.origin))).kind).toBe("issuer-differs");
  });

  test("the first has trouble -> told, and the second is not asked", async () => {
    const [bad, b] = [await authServer(() => ({ [OAUTH]: 503 })), await good()];
    expect((await refused(await several(bad.origin, b.origin))).kind).toBe("unavailable");
    expect(b.log).toEqual([]);
  });
});

describe("a server that may have moved since its sign-in", () => {
  const since = (
    server: AuthServer,
    issuer: string,
    { plan = {}, ...more }: { plan?: Partial<OAuthPlan>; acceptedIssuer?: string; limitMs?: number } = {},
  ): Promise<string | undefined> =>
    movedTo({
      ...more,
      url: new URL(`${server.origin}/mcp`),
      challenge: undefined,
      // One request alone never ends by itself.
      requests: requestsFor(server.origin, { limits: { bytes: 65_536, ms: 3_600_000 } }),
      plan: { grantType: "authorization_code", clientRegistration: "auto", ...plan },
      issuer,
    });
  const OLD = "https://old.example.com";

  test.each([OLD, `${OLD}/`])(
    "it names the same, written as %s -> not moved, and no other server is asked",
    async (named) => {
      const server = await naming(named);
      expect(await since(server, OLD)).toBeUndefined();
      expect(server.log).toEqual([`GET ${RESOURCE}/mcp`]);
    },
  );

  test("it names one that never answers -> not moved, once the time for the whole question is over", async () => {
    const silent = await authServer(() => ({ [OAUTH]: () => undefined }));
    expect(await since(await naming(silent.origin), OLD, { limitMs: 200 })).toBeUndefined();
    expect(silent.log).toEqual([`GET ${OAUTH}`]);
  });

  test("it names another -> moved there", async () => {
    const as = await authServer((origin) => ({ [OAUTH]: metadataOf(origin) }));
    expect(await since(await naming(as.origin), OLD)).toBe(as.origin);
  });

  test("it names another that has no metadata, or calls itself a third -> moved there", async () => {
    const [none, third] = [
      await authServer(),
      await authServer(() => ({ [OAUTH]: metadataOf("https://third.example.com") })),
    ];
    expect(await since(await naming(none.origin), OLD)).toBe(none.origin);
    expect(await since(await naming(third.origin), OLD, { acceptedIssuer: OLD })).toBe(third.origin);
  });

  test.each([
    ["accepted by the user", { acceptedIssuer: OLD }],
    ["configured", { plan: { issuer: OLD } }],
    ["one of any", { plan: { skipIssuerMetadataValidation: true as const } }],
  ])("it names the same by another name, which is %s -> not moved", async (_name, wanted) => {
    const as = await authServer(() => ({ [OAUTH]: metadataOf(OLD) }));
    expect(await since(await naming(as.origin), OLD, wanted)).toBeUndefined();
  });

  test("the configuration names the metadata -> not moved, and nothing is asked", async () => {
    const server = await naming("https://new.example.com");
    expect(await since(server, OLD, { plan: { authServerMetadataUrl: "https://a.com/x" } })).toBeUndefined();
    expect(server.log).toEqual([]);
  });

  test.each([
    ["it names none", { resource: "https://a.com" }],
    ["it has no metadata", 404],
    ["it has trouble", 503],
    ["it resets the connection", (response) => response.socket?.resetAndDestroy()],
  ] satisfies [string, Route][])("%s -> not moved", async (_name, route) => {
    expect(await since(await authServer(() => ({ [`${RESOURCE}/mcp`]: route })), OLD)).toBeUndefined();
  });

  test("it names another that has trouble -> not moved yet", async () => {
    const as = await authServer(() => ({ [OAUTH]: 503 }));
    expect(await since(await naming(as.origin), OLD)).toBeUndefined();
  });
});

/** Every address below `/.well-known` that is asked. */
const EVERYWHERE = [`${RESOURCE}/mcp`, RESOURCE, OAUTH, OPENID, "/authorize"];

describe("offersSignIn", () => {
  const offered = async (server: AuthServer): Promise<boolean> =>
    offersSignIn({
      url: new URL(`${server.origin}/mcp`),
      challenge: undefined,
      plan: { grantType: "authorization_code", clientRegistration: "auto" },
      requests: requestsFor(server.origin),
    });

  test("metadata that name another server -> yes, and that server is not asked before the user signs in", async () => {
    const as = await authServer();
    expect(await offered(await naming(as.origin))).toBe(true);
    expect(as.log).toEqual([]);
  });

  test.each<[string, (origin: string) => Record<string, Route>, boolean]>([
    ["nothing but 404", () => ({}), false],
    ["401 for everything", () => Object.fromEntries(EVERYWHERE.map((path) => [path, 401])), false],
    [
      "a web page for everything",
      () => Object.fromEntries(EVERYWHERE.map((path) => [path, "<html>"])),
      false,
    ],
    ["metadata of an authorization server", (origin) => ({ [OAUTH]: metadataOf(origin) }), true],
    ["metadata with a mistake", (origin) => ({ [OAUTH]: metadataOf(`${origin}/other`) }), true],
    ["metadata of a resource without an issuer", (origin) => ({ [RESOURCE]: { resource: origin } }), false],
    ["the page of MCP 2025-03-26", () => ({ "/authorize": 400 }), true],
    ["trouble", () => ({ [RESOURCE]: 503 }), true],
  ])("%s -> $2", async (_name, routes, offers) => {
    expect(await offered(await authServer(routes))).toBe(offers);
  });
});
