/** Owns: where the metadata of an authorization server are looked for, with real servers on loopback. */
import { describe, expect, test } from "vitest";
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
      facts: { url: `${as.origin}/`, what: "there are no metadata of an authorization server" },
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
    const { legacy, resource, metadata } = await found(server);
    expect({ legacy, resource, token: metadata.token_endpoint }).toEqual({
      legacy: true,
      token: `${server.origin}/t`,
    });
    expect(server.log).toEqual([`GET ${RESOURCE}/mcp`, `GET ${RESOURCE}`, `GET ${OAUTH}`]);
  });

  const PAGES = { "/authorize": status(400, "no client_id") };

  test("no metadata at all -> the default endpoints, with a note", async () => {
    const server = await authServer(() => PAGES);
    const { legacy, resource, metadata, notes } = await found(server);
    expect({ legacy, resource }).toEqual({ legacy: true, resource: undefined });
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
    expect((await found(server)).legacy).toBe(true);
  });

  test.each([401, 403, 404, 405, 410])(
    "the page of a sign-in answers %i -> no sign-in, unless the configuration names a client or a machine",
    async (code) => {
      const server = await authServer(() => ({ "/authorize": status(code) }));
      expect(await refused(server)).toEqual({ kind: "no-sign-in", facts: {} });
      expect(server.log.filter((line) => !line.startsWith("GET "))).toEqual([]);
      for (const plan of [{ clientId: "c" }, { grantType: "client_credentials" } as const])
        expect((await found(server, { plan })).legacy).toBe(true);
    },
  );

  test("web pages in the place of the resource's metadata -> the origin's metadata, but nothing is guessed", async () => {
    const pages = { [`${RESOURCE}/mcp`]: "<html>", [RESOURCE]: "<html>" };
    const server = await authServer((origin) => ({ ...pages, [OAUTH]: metadataOf(origin) }));
    expect((await found(server)).legacy).toBe(true);
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
    const { issuer, legacy, resource } = await found(server, { plan });
    expect({ issuer, legacy, resource }).toEqual({ issuer: "https://auth.example.com", legacy: false });
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

  test("no address -> bad-settings", async () => {
    const plan = { authServerMetadataUrl: "not an address" };
    expect(await refused(await authServer(), { plan })).toMatchObject({ kind: "bad-settings" });
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
