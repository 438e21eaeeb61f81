/** Owns: one request to an authorization server, with real servers on loopback. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import * as oauth from "oauth4webapi";
import { describe, expect, test } from "vitest";
import type { Resolve } from "../../../../../../workers/connection/auth/requests/addresses.ts";
import { authServer, problemOf, type Route, requestsFor, sending, serving } from "./support.ts";

const HTML = { "content-type": "text/html" };
const SHORT = { bytes: 1_024, ms: 100 };
/** A limit that only a test that hangs reaches. */
const ROOMY = { bytes: 1_024, ms: 60_000 };

describe("what is sent", () => {
  test("a GET -> it asks for JSON, without cookies", async () => {
    const { origin, headers, log } = await serving({});
    await requestsFor(origin).fetch(origin, { headers: { cookie: "a=1", accept: "*/*" } });
    expect(log).toEqual(["GET /"]);
    expect(headers[0]?.accept).toBe("application/json");
    expect(headers[0]?.cookie).toBeUndefined();
  });

  test("a server that sets a cookie -> the next request has none", async () => {
    const { origin, headers } = await serving(sending(200, "{}", { "set-cookie": "id=1" }));
    const requests = requestsFor(origin);
    await requests.fetch(origin, {});
    await requests.fetch(origin, {});
    expect(headers.map(({ cookie }) => cookie)).toEqual([undefined, undefined]);
  });

  test("a request to any origin -> it names this package as its User-Agent", async () => {
    const { origin, headers } = await serving({});
    await requestsFor("http://127.0.0.1:1/mcp").fetch(origin, {});
    expect(headers[0]?.["user-agent"]).toMatch(/^pi-mcp-threads\/\d/);
  });

  test("a form -> its body and its type", async () => {
    const { origin, headers, bodies } = await serving({});
    const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: "a b" });
    await requestsFor(origin).fetch(origin, { method: "POST", body });
    expect(bodies).toEqual(["grant_type=refresh_token&refresh_token=a+b"]);
    expect(headers[0]?.["content-type"]).toBe("application/x-www-form-urlencoded");
  });

  test("a text -> its body and the type that is given", async () => {
    const { origin, headers, bodies } = await serving({});
    const json = { "content-type": "application/json" };
    await requestsFor(origin).fetch(origin, { method: "POST", body: "{}", headers: json });
    expect(bodies).toEqual(["{}"]);
    expect(headers[0]?.["content-type"]).toBe("application/json");
  });
});

describe("configured headers of the MCP server", () => {
  const configured = {
    "X-Gateway-Key": "k",
    Authorization: "Bearer own",
    "Content-Type": "text/plain",
    Accept: "*/*",
  };

  test("a request to its origin -> it carries them, but none that the message itself sets", async () => {
    const { origin, headers } = await authServer(() => ({ "/a": {}, "/token": {} }));
    const requests = requestsFor(`${origin}/mcp`, { headers: configured });
    await requests.fetch(`${origin}/a`, {});
    const basic = { authorization: "Basic c2VjcmV0" };
    const body = new URLSearchParams({ grant_type: "refresh_token" });
    await requests.fetch(`${origin}/token`, { method: "POST", body, headers: basic });
    const [get, post] = headers;
    expect(get).toMatchObject({ "x-gateway-key": "k", accept: "application/json" });
    expect([get?.authorization, get?.["content-type"]]).toEqual([undefined, undefined]);
    expect(post).toMatchObject({
      ...{ "x-gateway-key": "k", authorization: "Basic c2VjcmV0" },
      "content-type": "application/x-www-form-urlencoded",
    });
  });

  test("a request to another origin -> it carries none of them", async () => {
    const { origin, headers } = await serving({});
    await requestsFor("http://127.0.0.1:1/mcp", { headers: configured }).fetch(origin, {});
    expect(headers[0]?.["x-gateway-key"]).toBeUndefined();
  });
});

describe("what is answered", () => {
  test.each([200, 204, 302, 304, 400, 401, 404, 429, 500, 503])(
    "status %i -> it resolves",
    async (status) => {
      const { origin } = await serving(sending(status, ""));
      expect((await requestsFor(origin).fetch(origin, {})).status).toBe(status);
    },
  );

  test("a redirect within the origin -> it is followed", async () => {
    const { origin, log } = await authServer(() => ({
      "/": sending(302, "", { location: "/there" }),
      "/there": { a: 1 },
    }));
    const response = await requestsFor(origin).fetch(origin, {});
    expect(await response.json()).toEqual({ a: 1 });
    expect(log).toEqual(["GET /", "GET /there"]);
  });

  test("a redirect to another origin -> it is not followed", async () => {
    const other = await serving({});
    const { origin } = await serving(sending(302, "", { location: other.origin }));
    expect((await requestsFor(origin).fetch(origin, {})).status).toBe(302);
    expect(other.log).toEqual([]);
  });

  test("a WWW-Authenticate beside an error -> only the error is passed on", async () => {
    const refusal = sending(401, '{"error":"invalid_client"}', {
      "www-authenticate": "Basic",
      "retry-after": "3",
    });
    const { origin } = await serving(refusal);
    const { headers } = await requestsFor(origin).fetch(origin, { method: "POST", body: "" });
    expect(Object.fromEntries(headers)).toEqual({ "content-type": "application/json", "retry-after": "3" });
  });

  test("a compressed answer that is long when it is not -> refused", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1_024));
    const { origin } = await serving(sending(200, bomb, { "content-encoding": "gzip" }));
    expect(await problemOf(requestsFor(origin, { limits: ROOMY }).fetch(origin, {}))).toEqual({
      kind: "bad-answer",
      facts: { url: `${origin}/`, what: "more than 1 KB" },
    });
  });

  test("an answer that never ends -> it is refused at the limit, and the connection is closed", async () => {
    const closed = Promise.withResolvers<void>();
    const { origin } = await serving((response) => {
      response.on("close", closed.resolve);
      const write = (): void => {
        while (!response.closed && response.write("x".repeat(64)));
        if (!response.closed) response.once("drain", write);
      };
      write();
    });
    expect((await problemOf(requestsFor(origin, { limits: ROOMY }).fetch(origin, {}))).kind).toBe(
      "bad-answer",
    );
    await closed.promise;
  });

  test("256 KB -> they arrive; a byte more -> it is refused", async () => {
    const { origin } = await authServer(() => ({
      "/fits": sending(200, "x".repeat(256 * 1_024)),
      "/too-long": sending(200, "x".repeat(256 * 1_024 + 1)),
    }));
    const requests = requestsFor(origin);
    expect(await (await requests.fetch(`${origin}/fits`, {})).text()).toHaveLength(256 * 1_024);
    expect((await problemOf(requests.fetch(`${origin}/too-long`, {}))).facts).toMatchObject({
      what: "more than 256 KB",
    });
  });

  test("a body that cannot be decompressed -> bad-answer", async () => {
    const { origin } = await serving(sending(200, "{}", { "content-encoding": "gzip" }));
    expect(await problemOf(requestsFor(origin).fetch(origin, {}))).toEqual({
      kind: "bad-answer",
      facts: { url: `${origin}/`, what: "it cannot be decompressed" },
    });
  });
});

describe("a web page in the place of JSON", () => {
  const ROWS: [status: number, kind: string, facts: object][] = [
    [200, "bad-answer", { status: 200, what: "HTML in the place of JSON, with status 200" }],
    [404, "bad-answer", { status: 404, what: "HTML in the place of JSON, with status 404" }],
    [408, "unavailable", { status: 408 }],
    [429, "unavailable", { status: 429 }],
    [503, "unavailable", { status: 503 }],
  ];
  test.each(ROWS)("a POST is answered with %i -> %s", async (status, kind, facts) => {
    const { origin } = await serving(sending(status, "<!doctype html>", HTML));
    const sent = requestsFor(origin).fetch(origin, { method: "POST", body: "" });
    expect(await problemOf(sent)).toEqual({ kind, facts: { url: `${origin}/`, ...facts } });
  });

  test.each([
    [403, "POST"],
    [200, "GET"],
    [500, "GET"],
  ])("%i to a %s -> it resolves", async (status, method) => {
    const { origin } = await serving(sending(status, "<!doctype html>", HTML));
    expect((await requestsFor(origin).fetch(origin, { method })).status).toBe(status);
  });
});

test.each([
  [200, `${'{"access_token":'.repeat(10_000)}1${"}".repeat(10_000)}`],
  [400, `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
])("a POST is answered with %i and JSON that nobody can write again -> bad-answer", async (status, text) => {
  const { origin } = await serving(sending(status, text, { "content-type": "application/json" }));
  const sent = requestsFor(origin).fetch(origin, { method: "POST", body: "" });
  expect(await problemOf(sent)).toEqual({
    kind: "bad-answer",
    facts: { url: `${origin}/`, status, what: "it holds too many lists and objects" },
  });
});

describe("no answer", () => {
  test("a silent server -> unreachable after the limit", async () => {
    const { origin } = await serving(() => undefined);
    expect(await problemOf(requestsFor(origin, { limits: SHORT }).fetch(origin, {}))).toEqual({
      kind: "unreachable",
      facts: { url: `${origin}/`, what: "no complete answer within 0.1 s" },
    });
  });

  test("a server that stops in the middle of an answer -> unreachable after the limit", async () => {
    const { origin } = await serving((response) => response.writeHead(200).write("{"));
    expect((await problemOf(requestsFor(origin, { limits: SHORT }).fetch(origin, {}))).kind).toBe(
      "unreachable",
    );
  });

  test("a name service that never answers -> unreachable after the limit", async () => {
    const resolve: Resolve = () => new Promise(() => undefined);
    const requests = requestsFor("https://mcp.example.com/mcp", { resolve, limits: SHORT });
    expect((await problemOf(requests.fetch("https://as.example.com/", {}))).kind).toBe("unreachable");
    expect((await problemOf(requests.fetch("https://10.0.0.1/", {}))).kind).toBe("unreachable");
  });

  test("nothing listens -> unreachable, without the query", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const url = `http://127.0.0.1:${port}/token`;
    expect(await problemOf(requestsFor(url).fetch(`${url}?code=secret`, {}))).toEqual({
      kind: "unreachable",
      facts: { url, what: "it refuses connections (ECONNREFUSED)" },
    });
  });

  test("a server that resets -> unreachable", async () => {
    const { origin } = await serving((response) => response.socket?.resetAndDestroy());
    expect((await problemOf(requestsFor(origin).fetch(origin, {}))).facts).toMatchObject({
      what: "it closed the connection without an answer (ECONNRESET)",
    });
  });

  test.each(["the session", "the caller"])("%s gives up -> cancelled", async (who) => {
    const asked = Promise.withResolvers<void>();
    const { origin } = await serving(() => asked.resolve());
    const session = new AbortController();
    const caller = new AbortController();
    const sent = requestsFor(origin, { signal: session.signal }).fetch(origin, { signal: caller.signal });
    const problem = problemOf(sent);
    await asked.promise;
    (who === "the session" ? session : caller).abort();
    expect((await problem).kind).toBe("cancelled");
  });

  test("a session that is over -> cancelled, and nothing is sent", async () => {
    const { origin, log } = await serving({});
    const requests = requestsFor(origin, { signal: AbortSignal.abort() });
    expect((await problemOf(requests.fetch(origin, {}))).kind).toBe("cancelled");
    expect(log).toEqual([]);
  });
});

describe("oauth4webapi over these requests", () => {
  const client = { client_id: "c" };
  const granting = async (route: Route): Promise<oauth.TokenEndpointResponse> => {
    const { origin } = await serving(route);
    const server: oauth.AuthorizationServer = { issuer: origin, token_endpoint: `${origin}/` };
    const { fetch } = requestsFor(origin);
    const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: fetch };
    const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), "old", options);
    return oauth.processRefreshTokenResponse(server, client, response);
  };

  test("tokens with every oddity at once -> accepted", async () => {
    const odd = '\uFEFF{"access_token":"a","scope":null,"expires_in":"3600","refresh_token":""}';
    const tokens = await granting(sending(201, odd, { "content-type": "text/plain" }));
    expect(tokens).toEqual({ access_token: "a", token_type: "bearer", expires_in: 3_600 });
    expect(await granting(sending(200, "access_token=a&token_type=bearer&scope="))).toMatchObject({
      access_token: "a",
    });
  });

  test.each<[string, Route]>([
    ["in a form under 200", sending(200, "error=invalid_grant")],
    [
      "beside a challenge",
      sending(401, '{"error":"invalid_grant"}', { "www-authenticate": 'Basic realm="x"' }),
    ],
    ["as an object under 200", { error: { code: "invalid_grant" } }],
  ])("an error %s -> the error", async (_name, route) => {
    await expect(granting(route)).rejects.toMatchObject({ error: "invalid_grant" });
  });

  test("its own name -> the server learns this package's", async () => {
    const { origin, headers } = await serving({ access_token: "a", token_type: "bearer" });
    const server: oauth.AuthorizationServer = { issuer: origin, token_endpoint: `${origin}/` };
    const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: requestsFor(origin).fetch };
    await oauth.refreshTokenGrantRequest(server, client, oauth.None(), "old", options);
    expect(headers[0]?.["user-agent"]).toMatch(/^pi-mcp-threads\/\d/);
  });

  test("a registration under 200 with a secret without an end -> accepted", async () => {
    const { origin } = await serving({ client_id: "c", client_secret: "s", scope: null });
    const server: oauth.AuthorizationServer = { issuer: origin, registration_endpoint: `${origin}/` };
    const options = { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: requestsFor(origin).fetch };
    const response = await oauth.dynamicClientRegistrationRequest(server, {}, options);
    expect(await oauth.processDynamicClientRegistrationResponse(response)).toEqual({
      client_id: "c",
      client_secret: "s",
      client_secret_expires_at: 0,
    });
  });
});
