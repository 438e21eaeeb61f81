/** Owns: which identity assertion counts, what an exchange of it asks for, and which assertion of an answer is sent on. */
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import type { GrantContext } from "../../../../../../workers/connection/auth/grants/ask.ts";
import { exchangeIdentity, readIdentity } from "../../../../../../workers/connection/auth/grants/id-jag.ts";
import {
  machineTokens,
  refreshTokens,
} from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import {
  type Answer,
  type AuthServer,
  authServer,
  contextOf,
  discoveredOf,
  problemOf,
  recordOf,
} from "./support.ts";

const ISSUER = "https://idp.example";
const CLIENT = "pi";
const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = (claims: unknown, header: object = { typ: "JWT" }): string =>
  `${part(header)}.${part(claims)}.c2ln`;

describe("the ID token of an answer (OpenID Connect Core, section 3.1.3.7)", () => {
  const CLAIMS = { iss: ISSUER, sub: "user-7", aud: CLIENT, exp: 2_000_000_000 };
  const server = { issuer: ISSUER, token_endpoint: `${ISSUER}/token` };
  const read = (answer: object | string, before?: string) =>
    readIdentity(typeof answer === "string" ? answer : JSON.stringify(answer), {
      server,
      clientId: CLIENT,
      before,
    });
  const sound = jwt(CLAIMS);

  test("it is the token, it ends when it says, and no other token of the answer is kept", () => {
    const answer = { access_token: "opaque", token_type: "Bearer", expires_in: 60, refresh_token: "next" };
    expect(read({ ...answer, id_token: sound })).toEqual({
      access_token: sound,
      token_type: "N_A",
      refresh_token: "next",
      expiresAt: 2_000_000_000_000,
    });
    expect(read({ id_token: sound, refresh_token: "a\nb" })).not.toHaveProperty("refresh_token");
  });

  test.each<[rule: string, claims: object]>([
    ["2: the issuer with a slash at its end", { iss: `${ISSUER}/` }],
    ["3: several audiences, of which the client is one", { aud: ["other", CLIENT], azp: CLIENT }],
    ["5: the authorized party is the client", { azp: CLIENT }],
  ])("rule %s -> it counts", (_rule, more) => {
    const token = jwt({ ...CLAIMS, ...more });
    expect(read({ id_token: token }).access_token).toBe(token);
  });

  test.each<[rule: string, claims: object, what: string]>([
    ["2: another issuer", { iss: "https://other.example" }, "has another issuer"],
    ["2: no issuer", { iss: undefined }, "has another issuer"],
    ["3: another audience", { aud: "other" }, "is for another client"],
    ["3: no audience", { aud: undefined }, "is for another client"],
    ["5: another authorized party", { aud: [CLIENT, "other"], azp: "other" }, "is for another client"],
    ["section 2: no subject", { sub: "" }, "does not say who the user is"],
    ["section 2: a subject that is no text", { sub: 7 }, "does not say who the user is"],
    ["9: no end", { exp: undefined }, "does not say when it ends"],
    ["9: an end that is no time", { exp: "soon" }, "does not say when it ends"],
    ["9: an end that no clock reaches", { exp: 1e300 }, "does not say when it ends"],
  ])("rule %s -> identity-wrong", async (_rule, more, what) => {
    const token = jwt({ ...CLAIMS, ...more });
    const problem = await problemOf((async () => read({ id_token: token }))());
    expect(problem).toMatchObject({ kind: "identity-wrong", facts: { what: `its ID token ${what}` } });
    expect(inspect(problem, { depth: 9 })).not.toContain(token);
  });

  test.each<[string, unknown]>([
    ["a number", 7],
    ["an encrypted one", "a.b.c.d.e"],
    ["one with control characters", `${sound}\u0007`],
    ["one with a line break at its end", `${sound}\n`],
    ["one of 20,000 characters", `${sound}${"x".repeat(20_000)}`],
    ["claims that are a list", jwt([])],
    ["claims that are no JSON", "e30.e30x.c2ln"],
  ])("%s -> identity-wrong", async (_what, token) => {
    expect(await problemOf((async () => read({ id_token: token }))())).toMatchObject({
      kind: "identity-wrong",
    });
  });

  test.each<object | string>([{ access_token: "a", token_type: "Bearer" }, [], "<html>", ""])(
    "the answer %j -> no-identity",
    async (answer) => {
      expect(await problemOf((async () => read(answer))())).toMatchObject({
        kind: "no-identity",
        facts: { url: `${ISSUER}/token` },
      });
    },
  );

  // Section 12.2.
  test("a renewal -> it is of the same user, or it does not count", async () => {
    expect(read({ id_token: sound }, jwt({ sub: "user-7" })).access_token).toBe(sound);
    expect(read({ id_token: sound }, "opaque").access_token).toBe(sound);
    expect(await problemOf((async () => read({ id_token: sound }, jwt({ sub: "user-8" })))())).toMatchObject({
      kind: "identity-wrong",
      facts: { what: "its ID token is of another user" },
    });
  });

  test("a refresh of the identity provider -> the ID token is what is renewed", async () => {
    const claims = { ...CLAIMS, sub: "user-7" };
    const on = await authServer(() => ({
      body: { access_token: "a", id_token: jwt({ ...claims, iss: on.issuer, aud: "client-1" }) },
    }));
    const record = recordOf(on, { access_token: jwt(claims) });
    const answer = await refreshTokens(record, { ...contextOf(), isIdentity: true });
    expect(answer).toMatchObject({ token_type: "N_A", access_token: expect.stringMatching(/^ey/) });
    const without = await authServer(() => ({ body: { access_token: "a", token_type: "Bearer" } }));
    const renewing = refreshTokens(recordOf(without), { ...contextOf(), isIdentity: true });
    expect(await problemOf(renewing)).toMatchObject({ kind: "no-identity" });
  });
});

const WISH = {
  audience: "https://as.example",
  resource: "https://docs.example/mcp",
  scope: "read",
  clientId: "pi-at-docs",
};
const IDENTITY = jwt({ sub: "user-7" });
const JAG_HEADER = { typ: "oauth-id-jag+jwt" };
const JAG_CLAIMS = { aud: WISH.audience, resource: WISH.resource, client_id: WISH.clientId };
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";
const jagAnswer = (claims: object = {}, more: object = {}, header: object = JAG_HEADER): Answer => ({
  body: {
    access_token: jwt({ ...JAG_CLAIMS, ...claims }, header),
    issued_token_type: ID_JAG,
    token_type: "N_A",
    ...more,
  },
});

function exchange(on: AuthServer, wish: { scope?: undefined } = {}, context: GrantContext = contextOf()) {
  const client = { id: CLIENT, method: "none", kind: "configured" } as const;
  return exchangeIdentity({ ...WISH, ...wish }, { server: on.metadata, client, identity: IDENTITY }, context);
}

describe("the exchange (Enterprise-Managed Authorization, section 4)", () => {
  const form = {
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    requested_token_type: ID_JAG,
    audience: WISH.audience,
    resource: WISH.resource,
    scope: "read",
    subject_token: IDENTITY,
    subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
    client_id: CLIENT,
  };

  test("all parameters of the table are sent, and the assertion is answered", async () => {
    const on = await authServer(() => jagAnswer());
    expect(await exchange(on)).toBe(jwt(JAG_CLAIMS, JAG_HEADER));
    expect(on.asked.map((one) => one.form)).toEqual([form]);
    const { scope: _none, ...others } = form;
    await exchange(on, { scope: undefined });
    expect(on.asked[1]?.form).toEqual(others);
  });

  test("a client with a secret -> it proves itself as at the sign-in", async () => {
    const on = await authServer(() => jagAnswer());
    const client = { id: CLIENT, method: "client_secret_basic", kind: "configured" } as const;
    const context = contextOf({ clientId: CLIENT, clientSecret: "pw" });
    await exchangeIdentity(WISH, { server: on.metadata, client, identity: IDENTITY }, context);
    const basic = `Basic ${Buffer.from("pi:pw").toString("base64")}`;
    expect(on.asked[0]?.headers.authorization).toBe(basic);
  });

  test.each<[section: string, answer: Answer]>([
    ["4.3: one audience in a list", jagAnswer({ aud: [WISH.audience] })],
    ["4.3: a slash at the end of the audience", jagAnswer({ aud: `${WISH.audience}/` })],
    ["4.3: no resource", jagAnswer({ resource: undefined })],
    ["RFC 7515, 4.1.9: the type in capital letters", jagAnswer({}, {}, { typ: "OAuth-ID-JAG+JWT" })],
    ["4.2: no type of token beside it", jagAnswer({}, { token_type: undefined })],
  ])("section %s -> it counts", async (_section, answer) => {
    expect(await exchange(await authServer(() => answer))).toMatch(/^ey/);
  });

  test.each<[section: string, answer: Answer, what: RegExp]>([
    ["4.3: another audience", jagAnswer({ aud: "https://b.example" }), /is for https:\/\/b\.example, and/],
    ["4.3: a wider audience", jagAnswer({ aud: [WISH.audience, "https://b.example"] }), /is for https:/],
    ["4.3: no audience", jagAnswer({ aud: undefined }), /is for nobody|is for , and/],
    ["4.3: another resource", jagAnswer({ resource: "https://b.example" }), /for the resource https:\/\/b/],
    ["4.3: another client", jagAnswer({ client_id: "other" }), /is for the client other/],
    ["4.3: no client", jagAnswer({ client_id: undefined }), /is for the client undefined/],
    ["4.3: an ID token", jagAnswer({}, {}, { typ: "JWT" }), /is no ID-JAG/],
    ["4.3: no type in the header", jagAnswer({}, {}, {}), /is no ID-JAG/],
    ["4.2: another type of token", jagAnswer({}, { issued_token_type: "x" }), /is no ID-JAG/],
    ["4.2: an opaque token", jagAnswer({}, { access_token: "opaque" }), /is no ID-JAG/],
    ["4.2: no token", { body: {} }, /is no ID-JAG/],
    ["4.2: HTML", { type: "text/html", body: "<html>" }, /is no ID-JAG/],
  ])("section %s -> identity-wrong, without the assertion", async (_section, answer, what) => {
    const problem = await problemOf(exchange(await authServer(() => answer)));
    expect(problem).toMatchObject({ kind: "identity-wrong", facts: { what: expect.stringMatching(what) } });
    expect(inspect(problem, { depth: 9 })).not.toContain("c2ln");
  });

  // RFC 6749, section 5.2; RFC 8693, section 2.2.2; RFC 9470, section 3.
  test.each<[string, string]>([
    ["access_denied", "company-denied"],
    ["invalid_target", "company-denied"],
    ["unauthorized_client", "company-denied"],
    ["invalid_grant", "identity-refused"],
    ["insufficient_user_authentication", "identity-refused"],
    ["login_required", "identity-refused"],
    ["interaction_required", "identity-refused"],
    ["invalid_client", "client-unknown"],
    ["invalid_scope", "scope-refused"],
    ["invalid_request", "refused"],
    ["unsupported_grant_type", "company-denied"],
    ["temporarily_unavailable", "unavailable"],
  ])("%s -> %s, after one request", async (error, kind) => {
    const body = { error, error_description: `You sent ${IDENTITY}` };
    const on = await authServer(() => ({ status: 400, body }));
    const problem = await problemOf(exchange(on));
    expect(problem.kind).toBe(kind);
    expect(inspect(problem, { depth: 9 })).not.toContain(IDENTITY);
    expect(on.asked).toHaveLength(1);
  });
});

describe("the token of a server that stands on the company (section 5)", () => {
  const plan = { grantType: "identity_provider", clientId: "pi-at-docs", clientSecret: "pw" } as const;

  test("the assertion for its authorization server is its grant, and the client proves itself", async () => {
    const on = await authServer(() => ({ body: { access_token: "new", token_type: "Bearer" } }));
    const wishes: unknown[] = [];
    const identityFor = async (wish: unknown): Promise<string> => {
      wishes.push(wish);
      return "j.a.g";
    };
    const discovered = discoveredOf(on.metadata, { resource: "https://docs.example/mcp" });
    await machineTokens({ discovered, scope: "read" }, { ...contextOf(plan), identityFor });
    const resource = "https://docs.example/mcp";
    expect(wishes).toEqual([{ audience: on.issuer, resource, scope: "read", clientId: "pi-at-docs" }]);
    expect(on.asked[0]?.form).toEqual({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: "j.a.g",
      scope: "read",
      resource,
    });
    expect(on.asked[0]?.headers.authorization).toMatch(/^Basic /);
  });

  test("the company says no -> the server's authorization server is not asked", async () => {
    const on = await authServer(() => ({ body: {} }));
    const identityFor = () =>
      exchange(
        on,
        {},
        {
          ...contextOf(),
          requests: { fetch: async () => new Response('{"error":"access_denied"}', { status: 400 }) },
        },
      );
    const asking = machineTokens(
      { discovered: discoveredOf(on.metadata), scope: undefined },
      { ...contextOf(plan), identityFor },
    );
    expect(await problemOf(asking)).toMatchObject({ kind: "company-denied" });
    expect(on.asked).toEqual([]);
  });

  test("no client -> bad-settings", async () => {
    const on = await authServer(() => ({ body: {} }));
    const asked = { discovered: discoveredOf(on.metadata), scope: undefined };
    const context = { ...contextOf({ grantType: "identity_provider" }), identityFor: async () => "j.a.g" };
    expect(await problemOf(machineTokens(asked, context))).toMatchObject({
      kind: "bad-settings",
      facts: { key: "oauth.clientId" },
    });
  });
});
