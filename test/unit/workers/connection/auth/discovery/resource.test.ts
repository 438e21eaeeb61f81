/** Owns: where the metadata of a resource are looked for, and for which resource they may be; real servers. */
import { describe, expect, test } from "vitest";
import { type AuthServer, authServer, type Route, requestsFor } from "../requests/support.ts";
import { challenged, found, metadataOf, naming, OAUTH, RESOURCE, refused, status } from "./support.ts";

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
    expect((await found(server, challenged(`${server.origin}/custom/metadata.json`))).legacy).toBe(false);
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
    const { issuer, resource, legacy, notes } = await found(server);
    expect({ issuer, resource, legacy }).toEqual({
      issuer: server.origin,
      resource: `${server.origin}/mcp`,
      legacy: false,
    });
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
