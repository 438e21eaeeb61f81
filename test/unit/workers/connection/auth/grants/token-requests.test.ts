/** Owns: refresh, client credentials, revocation, and how the answers of the token endpoint are read. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  lifeSeconds,
  machineTokens,
  refreshTokens,
  revokeTokens,
} from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import type { TokenAnswer } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import {
  type Answer,
  type AuthServer,
  authServer,
  contextOf,
  discoveredOf,
  problemOf,
  publicClient,
  recordOf,
} from "./support.ts";

const answered = { access_token: "new-access", token_type: "Bearer" };

describe("refreshTokens", () => {
  test("a record with resource -> the same resource is sent, and no scope", async () => {
    const server = await authServer(() => ({ body: answered }));
    const record = recordOf(server, {
      resource: "https://docs.example/mcp",
      scope: "a b",
      requestedScope: "a b",
    });
    await refreshTokens(record, contextOf());
    expect(server.asked.map(({ path, form }) => ({ path, form }))).toEqual([
      {
        path: "/token",
        form: {
          grant_type: "refresh_token",
          refresh_token: "refresh-token-1",
          client_id: "client-1",
          resource: "https://docs.example/mcp",
        },
      },
    ]);
  });

  test("no refresh token -> expired, and nothing is sent", async () => {
    const server = await authServer(() => ({ body: answered }));
    const { refresh_token: _none, ...record } = recordOf(server);
    expect(await problemOf(refreshTokens(record, contextOf()))).toMatchObject({ kind: "expired" });
    expect(server.asked).toEqual([]);
  });

  test("a token endpoint that is not https -> not-https, and nothing is sent", async () => {
    const server = await authServer(() => ({ body: answered }));
    const record = recordOf(server, { tokenEndpoint: "http://as.example/token" });
    expect(await problemOf(refreshTokens(record, contextOf()))).toMatchObject({ kind: "not-https" });
  });

  const failing = (error: string, status = 400): Answer => ({ status, body: { error } });
  const tokens = (more: object): Answer => ({ body: { ...answered, ...more } });
  const long = "a".repeat(20_000);
  test.each<[string, Answer | null, kind: string, facts?: object]>([
    ["invalid_grant", failing("invalid_grant"), "refresh-refused"],
    ["invalid_client", failing("invalid_client"), "client-unknown"],
    [
      "invalid_client as a challenge",
      { ...failing("invalid_client", 401), headers: { "www-authenticate": 'Basic realm="x"' } },
      "client-unknown",
    ],
    ["unauthorized_client", failing("unauthorized_client"), "client-unknown"],
    ["invalid_target", failing("invalid_target"), "resource-refused"],
    ["another error", failing("invalid_request"), "refused", { error: "invalid_request" }],
    ["temporarily_unavailable", failing("temporarily_unavailable"), "unavailable"],
    ["503", { status: 503, body: "" }, "unavailable", { status: 503 }],
    ["500 with invalid_grant", failing("invalid_grant", 500), "unavailable"],
    ["408", { status: 408, body: "" }, "unavailable"],
    ["429", failing("invalid_grant", 429), "unavailable", { status: 429 }],
    ["401 without an error", { status: 401, body: "" }, "bad-answer"],
    ["a redirect", { status: 302, headers: { location: "https://evil.example" }, body: "" }, "bad-answer"],
    ["HTML", { type: "text/html", body: "<html>" }, "bad-answer", { what: "it is not JSON" }],
    ["nothing", { body: "" }, "bad-answer", { what: "it is not JSON" }],
    ["a list", { body: [] }, "bad-answer"],
    [
      "no token",
      { body: { token_type: "Bearer" } },
      "bad-answer",
      { what: "its access_token is missing or wrong" },
    ],
    ["an empty token", tokens({ access_token: "" }), "bad-answer"],
    [
      "a token with a newline",
      tokens({ access_token: "a\r\nx-evil: 1" }),
      "bad-answer",
      { what: "its access_token cannot be sent" },
    ],
    ["a token with a space", tokens({ access_token: "a b" }), "bad-answer"],
    ["a refresh token of 20,000 characters", tokens({ refresh_token: long }), "bad-answer"],
    ["a token of 20,000 characters", tokens({ access_token: long }), "bad-answer"],
    [
      "a refresh token with a newline",
      tokens({ refresh_token: "a\nb" }),
      "bad-answer",
      { what: "its refresh_token cannot be sent" },
    ],
    ["a refresh token that is a number", tokens({ refresh_token: 7 }), "bad-answer"],
    ["DPoP", tokens({ token_type: "DPoP" }), "bad-answer", { what: "its token_type is not Bearer" }],
    ["a connection that is cut", null, "unreachable"],
  ])("%s -> the problem, after one request", async (_condition, answer, kind, facts = {}) => {
    const server = await authServer(() => answer);
    expect(await problemOf(refreshTokens(recordOf(server), contextOf()))).toMatchObject({ kind, facts });
    expect(server.asked).toHaveLength(1);
  });

  test("a connection that is cut in the middle of the answer -> unreachable, which may be repeated", async () => {
    const server = await authServer(() => ({
      headers: { "content-length": "500" },
      body: '{"access_token":',
    }));
    const context = contextOf();
    const cutting = {
      ...context,
      requests: {
        fetch: async (...[url, init]: Parameters<typeof context.requests.fetch>) => {
          const response = await context.requests.fetch(url, init);
          const broken = new ReadableStream({
            pull: (controller) => controller.error(new TypeError("terminated")),
          });
          await response.body?.cancel();
          return new Response(broken, { status: 200 });
        },
      },
    };
    expect(await problemOf(refreshTokens(recordOf(server), cutting))).toMatchObject({
      kind: "unreachable",
      facts: { url: `${server.issuer}/token` },
    });
  });
});

describe("the answer", () => {
  const life = (seconds: number): object => ({ expiresAt: seconds });
  test.each<[string, object, object]>([
    ["a new refresh token", { refresh_token: "next" }, { refresh_token: "next" }],
    ["no refresh token", {}, {}],
    ["BEARER", { token_type: "BEARER" }, { token_type: "Bearer" }],
    ["a scope", { scope: "a  b" }, { scope: "a b" }],
    ["an empty scope", { scope: "" }, {}],
    ["an id_token that is none", { id_token: "not.a.token" }, {}],
    ["an id_token that is a number", { id_token: 7 }, {}],
    ["a life of an hour", { expires_in: 3600 }, life(3600)],
    ["a life as text", { expires_in: "3600" }, life(3600)],
    ["a life of a century", { expires_in: 3_155_760_000 }, life(315_360_000)],
    ["a life of nothing", { expires_in: 0 }, {}],
    ["a life that is over", { expires_in: -1 }, {}],
    ["a life in words", { expires_in: "soon" }, {}],
    ["unknown fields", { foo: { bar: 1 } }, {}],
  ])("%s -> what is kept", async (_condition, more, kept) => {
    const server = await authServer(() => ({ body: { ...answered, ...more } }));
    const before = Date.now();
    const { expiresAt, ...answer } = await refreshTokens(recordOf(server), contextOf());
    const { expiresAt: seconds, ...rest } = kept as { expiresAt?: number };
    expect(answer).toEqual({ ...answered, ...rest });
    if (seconds === undefined) {
      expect(expiresAt).toBeUndefined();
      return;
    }
    expect(expiresAt).toBeGreaterThanOrEqual(before + seconds * 1_000);
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + seconds * 1_000);
  });

  test.each<[unknown, number | undefined]>([
    [0.5, 0.5],
    ["60", 60],
    ["", undefined],
    [" ", undefined],
    [null, undefined],
    [true, undefined],
    [[60], undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, 315_360_000],
    ["1e99", 315_360_000],
  ])("expires_in %j -> %j seconds", (expiresIn, seconds) => {
    expect(lifeSeconds(expiresIn)).toBe(seconds);
  });
});

describe("machineTokens", () => {
  const plan = { grantType: "client_credentials" as const, clientId: "machine", clientSecret: "s3cret" };

  test("scope and resource -> both are sent; a refresh token is not kept", async () => {
    const server = await authServer(() => ({
      body: { ...answered, refresh_token: "unused", expires_in: 60 },
    }));
    const discovered = discoveredOf(server.metadata, { resource: "https://docs.example/mcp" });
    expect(await machineTokens({ discovered, scope: "a" }, contextOf(plan))).toEqual({
      ...answered,
      expiresAt: expect.any(Number),
    });
    expect(server.asked[0]?.form).toEqual({
      grant_type: "client_credentials",
      scope: "a",
      resource: "https://docs.example/mcp",
    });
  });

  test.each<[string, string]>([
    ["invalid_client", "client-unknown"],
    ["invalid_scope", "scope-refused"],
    ["invalid_target", "resource-refused"],
    ["invalid_grant", "refused"],
    ["unsupported_grant_type", "refused"],
  ])("%s -> %s", async (error, kind) => {
    const server = await authServer(() => ({ status: 400, body: { error } }));
    const asked = { discovered: discoveredOf(server.metadata), scope: undefined };
    expect(await problemOf(machineTokens(asked, contextOf(plan)))).toMatchObject({ kind });
  });

  test("no token endpoint -> no-endpoint", async () => {
    const discovered = discoveredOf({ issuer: "https://as.example" });
    expect(await problemOf(machineTokens({ discovered, scope: undefined }, contextOf(plan)))).toMatchObject({
      kind: "no-endpoint",
      facts: { what: "token_endpoint" },
    });
  });
});

/** An assertion with these claims, which nobody verifies. */
const assertionOf = (claims: object): string =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;

describe("an assertion as the grant (RFC 7523, section 2.1)", () => {
  const plan = { grantType: "jwt_bearer", assertion: "a.b.c" } as const;
  const ask = (on: AuthServer, more: Partial<OAuthPlan> = {}): Promise<TokenAnswer> =>
    machineTokens(
      { discovered: discoveredOf(on.metadata), scope: undefined },
      contextOf({ ...plan, ...more }),
    );
  const form = { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: "a.b.c" };

  // Section 3.1: client authentication is optional, and so is the client's id.
  test.each<[string, Partial<OAuthPlan>, object]>([
    ["no client", {}, form],
    ["a client without a secret", { clientId: "ci" }, { ...form, client_id: "ci" }],
    ["a client with a secret", { clientId: "ci", clientSecret: "pw" }, form],
  ])("%s -> what is sent", async (_client, more, sent) => {
    const on = await authServer(() => ({ body: { ...answered, refresh_token: "unused" } }));
    expect(await ask(on, more)).toEqual(answered);
    expect(on.asked.map((one) => one.form)).toEqual([sent]);
    const basic = more.clientSecret && `Basic ${Buffer.from("ci:pw").toString("base64")}`;
    expect(on.asked[0]?.headers.authorization).toBe(basic);
  });

  test("scope and resource -> both are sent; no text may show the assertion from now on", async () => {
    const on = await authServer(() => ({ body: answered }));
    const discovered = discoveredOf(on.metadata, { resource: "https://docs.example/mcp" });
    const secrets: string[] = [];
    const onSecret = (secret: string): void => void secrets.push(secret);
    await machineTokens({ discovered, scope: "a b" }, { ...contextOf(plan), onSecret });
    expect(secrets).toEqual(["a.b.c"]);
    expect(on.asked[0]?.form).toEqual({ ...form, scope: "a b", resource: "https://docs.example/mcp" });
  });

  test("a file -> it is read anew for each token", async () => {
    const on = await authServer(() => ({ body: answered }));
    const assertionFile = join(await tempFolder(), "token");
    for (const text of ["a.b.c\n", "\uFEFFd.e.f"]) {
      await writeFile(assertionFile, text);
      const context = contextOf({ grantType: "jwt_bearer", assertionFile });
      await machineTokens({ discovered: discoveredOf(on.metadata), scope: undefined }, context);
    }
    expect(on.asked.map((one) => one.form.assertion)).toEqual(["a.b.c", "d.e.f"]);
  });

  // Section 3.1: invalid_grant. The others are of RFC 6749, section 5.2.
  test.each<[string, string]>([
    ["invalid_grant", "assertion-refused"],
    ["invalid_client", "client-unknown"],
    ["unauthorized_client", "client-unknown"],
    ["invalid_scope", "scope-refused"],
    ["invalid_target", "resource-refused"],
    ["unsupported_grant_type", "refused"],
    ["temporarily_unavailable", "unavailable"],
  ])("%s -> %s, after one request of this grant alone", async (error, kind) => {
    const on = await authServer(() => ({ status: 400, body: { error } }));
    expect(await problemOf(ask(on, { clientId: "ci", clientSecret: "pw" }))).toMatchObject({ kind });
    expect(on.asked.map((one) => one.form.grant_type)).toEqual([form.grant_type]);
  });

  const PAST = 1_000_000_000;
  test.each<[string, object, RegExp | undefined]>([
    ["a text", { aud: "https://other.example" }, /^its audience is https:\/\/other.example$/],
    ["a list, one of it a number", { aud: ["a", 7, "b"] }, /^its audience is a, b$/],
    ["an end in the past", { aud: "a", exp: PAST }, /^its audience is a, and it ended \d+ s ago$/],
    ["an end in the future, no audience", { exp: Date.now() }, undefined],
    ["no claims that it knows", { aud: {}, exp: "soon" }, undefined],
  ])("refused, and its claims have %s -> the problem says so", async (_claims, claims, found) => {
    const body = { error: "invalid_grant", error_description: "no" };
    const on = await authServer(() => ({ status: 400, body }));
    const problem = await problemOf(ask(on, { assertion: assertionOf(claims) }));
    expect(problem.facts).toEqual({
      error: "invalid_grant",
      what: "no",
      expected: on.issuer,
      ...(found && { found: expect.stringMatching(found) }),
    });
  });

  test("refused, and the answer repeats the assertion -> the problem does not", async () => {
    const on = await authServer(({ form: sent }) => ({
      status: 400,
      body: { error: "invalid_grant", error_description: `I do not trust ${sent.assertion}` },
    }));
    const assertion = assertionOf({ sub: "workload" });
    const problem = await problemOf(ask(on, { assertion }));
    expect(problem.facts.what).toBe("I do not trust [redacted]");
    expect(inspect(problem, { depth: 9 })).not.toContain(assertion);
  });

  test.each([
    ["control characters", "a.b.c\u001b[2J"],
    ["a line of a header", "a.b.c\r\nx-evil: 1"],
    ["NUL", "a.b.c\0"],
    ["two assertions", "a.b.c\nd.e.f"],
    ["no signature", "a.b"],
    ["nothing", " \n"],
    ["100,000 bytes", `a.b.${"c".repeat(100_000)}`],
  ])("a file with %s -> bad-settings without its words, and nothing is sent", async (_condition, text) => {
    const on = await authServer(() => ({ body: answered }));
    const assertionFile = join(await tempFolder(), "token");
    await writeFile(assertionFile, text);
    const context = contextOf({ grantType: "jwt_bearer", assertionFile });
    const asking = machineTokens({ discovered: discoveredOf(on.metadata), scope: undefined }, context);
    const problem = await problemOf(asking);
    expect(problem).toMatchObject({ kind: "bad-settings", facts: { key: "oauth.assertionFile" } });
    expect(inspect(problem, { depth: 9 })).not.toContain("a.b");
    expect(on.asked).toEqual([]);
  });
});

describe("revokeTokens", () => {
  test("both tokens -> the refresh token first", async () => {
    const server = await authServer(() => ({ body: "" }));
    await revokeTokens(recordOf(server), contextOf());
    expect(server.asked.map(({ path, form }) => ({ path, form }))).toEqual([
      {
        path: "/revoke",
        form: { token: "refresh-token-1", token_type_hint: "refresh_token", client_id: "client-1" },
      },
      {
        path: "/revoke",
        form: { token: "access-token-1", token_type_hint: "access_token", client_id: "client-1" },
      },
    ]);
  });

  test("a client with a secret -> it proves who it is", async () => {
    const server = await authServer(() => ({ status: 204, body: "" }));
    const client = { ...publicClient, method: "client_secret_basic" as const, secret: "own" };
    await revokeTokens(recordOf(server, { client }), contextOf());
    expect(server.asked[0]?.headers.authorization).toMatch(/^Basic /);
  });

  test("no endpoint -> nothing is sent", async () => {
    const server = await authServer(() => ({ body: "" }));
    const { revocationEndpoint: _none, ...record } = recordOf(server);
    await revokeTokens(record, contextOf());
    expect(server.asked).toEqual([]);
  });

  test("the first one fails -> the second one is tried, and the failure is told", async () => {
    const server = await authServer((_asked, nth) => (nth === 0 ? { status: 503, body: "" } : { body: "" }));
    expect(await problemOf(revokeTokens(recordOf(server), contextOf()))).toMatchObject({
      kind: "unavailable",
    });
    expect(server.asked).toHaveLength(2);
  });

  test("an OAuth error -> refused", async () => {
    const server = await authServer(() => ({ status: 400, body: { error: "unsupported_token_type" } }));
    expect(await problemOf(revokeTokens(recordOf(server), contextOf()))).toMatchObject({
      kind: "refused",
      facts: { error: "unsupported_token_type" },
    });
  });
});
