/** Owns: which authorization server is found, and the oddities of real ones, with real servers on loopback. */
import { describe, expect, test } from "vitest";
import { movedTo, offersSignIn } from "../../../../../../workers/connection/auth/discovery/discovery.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { type AuthServer, authServer, type Route, requestsFor } from "../requests/support.ts";
import { found, metadataOf, naming, OAUTH, OPENID, RESOURCE, refused } from "./support.ts";

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

  test("Keycloak: a path in the issuer, metadata behind it -> found", async () => {
    const as = await authServer((origin) => ({
      [`/realms/one${OPENID}`]: metadataOf(`${origin}/realms/one`),
    }));
    expect((await found(await naming(`${as.origin}/realms/one`))).issuer).toBe(`${as.origin}/realms/one`);
  });

  test("Entra: no PKCE advertised -> accepted with one note", async () => {
    const as = await authServer((origin) => ({
      [`/tenant/v2.0${OPENID}`]: metadataOf(`${origin}/tenant/v2.0`, {
        code_challenge_methods_supported: undefined,
      }),
    }));
    const { notes } = await found(await naming(`${as.origin}/tenant/v2.0`));
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

  test("GitHub: no registration -> found without its endpoint", async () => {
    const as = await authServer((origin) => ({
      [`${OAUTH}/login/oauth`]: metadataOf(`${origin}/login/oauth`, { registration_endpoint: undefined }),
    }));
    const { metadata } = await found(await naming(`${as.origin}/login/oauth`));
    expect(metadata.registration_endpoint).toBeUndefined();
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

  test("PKCE without S256 -> refused", async () => {
    const as = await authServer((origin) => ({
      [OAUTH]: metadataOf(origin, { code_challenge_methods_supported: ["plain"] }),
    }));
    expect((await refused(await naming(as.origin))).kind).toBe("pkce-refused");
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
  ])("%s -> %3$s", async (_name, routes, offers) => {
    expect(await offered(await authServer(routes))).toBe(offers);
  });
});
