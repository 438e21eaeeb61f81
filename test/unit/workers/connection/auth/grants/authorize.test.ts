/** Owns: the authorization request, the checks of its answer, and the exchange of the code. */

import { createHash } from "node:crypto";
import { inspect } from "node:util";
import type { AuthorizationServer } from "oauth4webapi";
import { describe, expect, test } from "vitest";
import type { PendingAuthorization } from "../../../../../../workers/connection/auth/grants/ask.ts";
import {
  beginAuthorization,
  chooseScope,
} from "../../../../../../workers/connection/auth/grants/authorize.ts";
import { finishAuthorization } from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import type { ClientRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import {
  type Answer,
  type AuthServer,
  authServer,
  contextOf,
  discoveredOf,
  problemOf,
  publicClient,
} from "./support.ts";

interface Known {
  scope?: string;
  grantType?: OAuthPlan["grantType"];
  challenged?: string;
  requested?: string;
  granted?: string;
  resourceScopes?: string[];
  /** `scopes_supported` of the authorization server. */
  supported?: string[];
}

function chosen({ scope, grantType = "authorization_code", resourceScopes, supported, ...known }: Known) {
  const metadata = { issuer: "https://as.example", ...(supported && { scopes_supported: supported }) };
  return chooseScope({
    plan: { grantType, clientRegistration: "auto", ...(scope !== undefined && { scope }) },
    discovered: discoveredOf(metadata, resourceScopes ? { resourceScopes } : {}),
    challenged: known.challenged,
    requested: known.requested,
    granted: known.granted,
  });
}

const many = Array.from({ length: 150 }, (_, i) => `s${i}`);

const ROWS: [condition: string, known: Known, outcome: string | undefined][] = [
  ["nothing is known", {}, undefined],
  ["the resource names scopes", { resourceScopes: ["a", "b"] }, "a b"],
  ["the resource names none", { resourceScopes: [] }, undefined],
  ["a challenge", { challenged: "c", resourceScopes: ["a", "b"] }, "c"],
  ["a configured scope", { scope: "mine", resourceScopes: ["a"] }, "mine"],
  ["a configured scope and a challenge", { scope: "mine", challenged: "c mine" }, "mine c"],
  ["a configured scope that is empty", { scope: "", resourceScopes: ["a"] }, undefined],
  ["a step-up", { challenged: "write", requested: "read list", granted: "read" }, "write read list"],
  [
    "a step-up with a configured scope",
    { scope: "mine", challenged: "write", requested: "read" },
    "mine write read",
  ],
  [
    "the authorization server lists offline_access",
    { challenged: "c", supported: ["c", "offline_access"] },
    "c offline_access",
  ],
  [
    "offline_access is asked for already",
    { challenged: "offline_access c", supported: ["offline_access"] },
    "offline_access c",
  ],
  ["offline_access is listed and no scope is known", { supported: ["offline_access"] }, undefined],
  ["offline_access is not listed", { challenged: "c", supported: ["c"] }, "c"],
  [
    "offline_access is listed, the scope is configured",
    { scope: "mine", supported: ["offline_access"] },
    "mine",
  ],
  [
    "offline_access is listed, no user is needed",
    { grantType: "client_credentials", challenged: "c", supported: ["offline_access"] },
    "c",
  ],
  ["a server names what is no scope", { challenged: 'ok "quoted" back\\slash ümlaut' }, "ok"],
  ["tabs and newlines in a challenge", { challenged: "a\tb\nc" }, "a b c"],
  ["a server names 150 scopes", { resourceScopes: many }, many.slice(0, 100).join(" ")],
  ["a server names a scope of 3,000 characters", { resourceScopes: ["x".repeat(3_000), "a"] }, "a"],
];

describe("chooseScope", () => {
  test.each(ROWS)("%s -> the scope", (_condition, known, outcome) => {
    expect(chosen(known)).toBe(outcome);
  });
});

const REDIRECT = "http://127.0.0.1:4711/callback";
const tokens = { body: { access_token: "new-token", token_type: "Bearer" } };

interface Begun {
  plan?: Partial<OAuthPlan>;
  resource?: string;
  scope?: string;
  client?: ClientRecord;
}

const begin = (metadata: AuthorizationServer, { plan, resource, scope, client }: Begun = {}) =>
  beginAuthorization(
    {
      discovered: discoveredOf(metadata, resource === undefined ? {} : { resource }),
      client: client ?? publicClient,
      redirectUri: REDIRECT,
      scope,
    },
    contextOf(plan),
  );

const metadata: AuthorizationServer = {
  issuer: "https://as.example",
  authorization_endpoint: "https://as.example/authorize",
  token_endpoint: "https://as.example/token",
};

const parametersOf = (url: string): Record<string, string> => Object.fromEntries(new URL(url).searchParams);

describe("the request", () => {
  test("all that is known -> each parameter once, PKCE with S256", async () => {
    const pending = await begin(metadata, { resource: "https://docs.example/mcp", scope: "a b" });
    const { state, verifier } = pending;
    expect(pending).toMatchObject({ redirectUri: REDIRECT, scope: "a b", client: publicClient });
    expect(pending.url).toMatch(/^https:\/\/as\.example\/authorize\?/);
    expect(parametersOf(pending.url)).toEqual({
      response_type: "code",
      client_id: "client-1",
      redirect_uri: REDIRECT,
      scope: "a b",
      state,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
      resource: "https://docs.example/mcp",
    });
    for (const random of [state, verifier]) expect(random).toMatch(/^[\w-]{43}$/);
    expect(pending.url).not.toContain(verifier);
  });

  test("neither scope nor resource -> neither is named", async () => {
    const parameters = parametersOf((await begin(metadata)).url);
    expect(parameters).not.toHaveProperty("scope");
    expect(parameters).not.toHaveProperty("resource");
  });

  test("two requests -> another state, another verifier", async () => {
    const [one, other] = [await begin(metadata), await begin(metadata)];
    expect(one.state).not.toBe(other.state);
    expect(one.verifier).not.toBe(other.verifier);
  });

  test("further parameters of the configuration -> they are added", async () => {
    const authorizationParams = { access_type: "offline", prompt: "consent" };
    expect(parametersOf((await begin(metadata, { plan: { authorizationParams } })).url)).toMatchObject(
      authorizationParams,
    );
  });

  test("the endpoint has a query and a fragment -> the query stays, but decides nothing", async () => {
    const authorization_endpoint =
      "https://as.example/authorize?tenant=7&redirect_uri=https://evil.example&state=x&Request_URI=y&scope=all#f";
    const { url, state } = await begin({ ...metadata, authorization_endpoint });
    expect(new URL(url).searchParams.getAll("redirect_uri")).toEqual([REDIRECT]);
    expect(new URL(url).searchParams.getAll("state")).toEqual([state]);
    expect(parametersOf(url)).toMatchObject({ tenant: "7" });
    for (const name of ["Request_URI", "scope"]) expect(parametersOf(url)).not.toHaveProperty(name);
    expect(new URL(url).hash).toBe("");
  });

  test.each<[string | undefined, object]>([
    [
      undefined,
      { kind: "no-endpoint", facts: { what: "authorization_endpoint", url: "https://as.example" } },
    ],
    ["not a url", { kind: "no-endpoint" }],
    [
      "http://as.example/authorize?key=1",
      { kind: "not-https", facts: { url: "http://as.example/authorize" } },
    ],
    ["javascript:alert(1)", { kind: "not-https" }],
    ["file:///etc/passwd", { kind: "not-https" }],
    ["https://user:password@as.example/authorize", { kind: "bad-answer" }],
    ["http://127.0.0.1.evil.example/authorize", { kind: "not-https" }],
  ])("the endpoint is %s -> the problem", async (endpoint, problem) => {
    const { authorization_endpoint: _other, ...rest } = metadata;
    const changed = endpoint === undefined ? rest : { ...rest, authorization_endpoint: endpoint };
    expect(await problemOf(begin(changed))).toMatchObject(problem);
  });

  test.each(["http://localhost:1/a", "http://127.0.0.1:1/a", "http://127.9.9.9:1/a", "http://[::1]:1/a"])(
    "the endpoint is %s -> it may be opened",
    async (authorization_endpoint) => {
      expect((await begin({ ...metadata, authorization_endpoint })).url).toContain(authorization_endpoint);
    },
  );
});

/** A waiting authorization at a server whose token endpoint gives the answer. */
async function waiting({
  answer = tokens as Answer,
  more = {} as Partial<AuthorizationServer>,
  begun = {} as Begun,
} = {}): Promise<{ server: AuthServer; pending: PendingAuthorization }> {
  const server = await authServer(() => answer, more);
  return { server, pending: await begin(server.metadata, begun) };
}

const ISS = { authorization_response_iss_parameter_supported: true };

const finish = (pending: PendingAuthorization, parameters: Record<string, string>, plan = {}) =>
  finishAuthorization(pending, { parameters: new URLSearchParams(parameters) }, contextOf(plan));

describe("the answer", () => {
  test("a code -> one token request with verifier, redirect URI and resource", async () => {
    const { server, pending } = await waiting({
      begun: { resource: "https://docs.example/mcp", scope: "a" },
    });
    expect(await finish(pending, { code: "c0de", state: pending.state })).toEqual({
      access_token: "new-token",
      token_type: "Bearer",
    });
    expect(server.asked.map(({ path, form }) => ({ path, form }))).toEqual([
      {
        path: "/token",
        form: {
          grant_type: "authorization_code",
          code: "c0de",
          redirect_uri: REDIRECT,
          code_verifier: pending.verifier,
          client_id: "client-1",
          resource: "https://docs.example/mcp",
        },
      },
    ]);
  });

  test("a configured client -> its secret is sent with the code", async () => {
    const client: ClientRecord = { id: "mine", method: "client_secret_post", kind: "configured" };
    const { server, pending } = await waiting({ begun: { client } });
    await finish(pending, { code: "c", state: pending.state }, { clientId: "mine", clientSecret: "s3cret" });
    expect(server.asked[0]?.form).toMatchObject({ client_id: "mine", client_secret: "s3cret" });
  });

  /** STATE and ISSUER stand for those of the request. */
  const REFUSED: [string, Partial<AuthorizationServer>, parameters: string, kind: string, facts?: object][] =
    [
      ["no state", {}, "code=c", "state-wrong"],
      ["an empty state", {}, "code=c&state=", "state-wrong"],
      ["another state", {}, "code=c&state=STATEx", "state-wrong"],
      ["two states", {}, "code=c&state=STATE&state=STATE", "state-wrong"],
      ["another state beside an error", {}, "error=access_denied&state=x", "state-wrong"],
      ["iss is advertised and absent", ISS, "code=c&state=STATE", "response-issuer-absent"],
      [
        "iss is advertised and empty",
        ISS,
        "code=c&state=STATE&iss=",
        "response-issuer-wrong",
        { found: "no server" },
      ],
      [
        "iss is another",
        ISS,
        "code=c&state=STATE&iss=https://evil.example/call/555-0100",
        "response-issuer-wrong",
        { found: "https://evil.example" },
      ],
      [
        "iss is no address of the web",
        ISS,
        "code=c&state=STATE&iss=data:text/plain,call",
        "response-issuer-wrong",
        { found: "no server" },
      ],
      [
        "iss is another, not advertised",
        {},
        "code=c&state=STATE&iss=https://evil.example",
        "response-issuer-wrong",
      ],
      [
        "iss has a slash more",
        ISS,
        "code=c&state=STATE&iss=ISSUER/",
        "response-issuer-wrong",
        { found: expect.stringMatching(/^another address of http:..127\.0\.0\.1:\d+$/) },
      ],
      ["iss stands there twice", ISS, "code=c&state=STATE&iss=ISSUER&iss=ISSUER", "response-issuer-wrong"],
      ["access_denied", {}, "error=access_denied&state=STATE", "denied"],
      ["invalid_scope", {}, "error=invalid_scope&state=STATE", "scope-refused", { scope: "a b" }],
      ["unauthorized_client", {}, "error=unauthorized_client&state=STATE", "client-unknown"],
      ["invalid_target", {}, "error=invalid_target&state=STATE", "resource-refused"],
      [
        "Entra refuses resource",
        {},
        "error=invalid_request&error_description=AADSTS9010010: The resource ...&state=STATE",
        "resource-refused",
      ],
      [
        "another error",
        {},
        "error=server_error&error_description=try later&state=STATE",
        "refused",
        { error: "server_error", what: "try later" },
      ],
      ["neither code nor error", {}, "state=STATE", "code-refused"],
      ["two codes", {}, "code=a&code=b&state=STATE", "code-refused"],
      ["a code of 9,000 characters", {}, `code=${"c".repeat(9_000)}&state=STATE`, "code-refused"],
    ];

  test.each(REFUSED)(
    "%s -> the problem, and no token request",
    async (_condition, more, parameters, kind, facts = {}) => {
      const { server, pending } = await waiting({ more, begun: { scope: "a b" } });
      const text = parameters.replaceAll("STATE", pending.state).replaceAll("ISSUER", server.issuer);
      const sent = { parameters: new URLSearchParams(text) };
      expect(await problemOf(finishAuthorization(pending, sent, contextOf()))).toMatchObject({ kind, facts });
      expect(server.asked).toEqual([]);
    },
  );

  test.each([
    ["advertised", ISS],
    ["not advertised", {}],
  ])("the right iss, %s -> the code is exchanged", async (_condition, more) => {
    const { server, pending } = await waiting({ more });
    await finish(pending, { code: "c", state: pending.state, iss: server.issuer });
    expect(server.asked).toHaveLength(1);
  });

  test("another iss with an error -> nothing of the error is known", async () => {
    const { pending } = await waiting({ more: ISS });
    const lie = {
      error: "access_denied",
      error_description: "call 555-0100",
      state: pending.state,
      iss: "https://evil.example",
    };
    const { kind, facts } = await problemOf(finish(pending, lie));
    expect(kind).toBe("response-issuer-wrong");
    expect(JSON.stringify(facts)).not.toMatch(/denied|555/);
  });

  test("the same answer twice -> the second one is refused without a request", async () => {
    const { server, pending } = await waiting();
    const answer = { code: "c", state: pending.state };
    await finish(pending, answer);
    expect(await problemOf(finish(pending, answer))).toMatchObject({ kind: "state-wrong" });
    expect(server.asked).toHaveLength(1);
  });

  test("a wrong state first -> the right one still counts", async () => {
    const { pending } = await waiting();
    await problemOf(finish(pending, { code: "c", state: "wrong" }));
    expect(await finish(pending, { code: "c", state: pending.state })).toMatchObject({
      access_token: "new-token",
    });
  });

  test("a bare code -> it is exchanged", async () => {
    const { server, pending } = await waiting();
    await finishAuthorization(pending, { bareCode: "c0de" }, contextOf());
    expect(server.asked[0]?.form).toMatchObject({ code: "c0de", code_verifier: pending.verifier });
  });

  test("a bare code where iss is due -> it is refused without a request", async () => {
    const { server, pending } = await waiting({ more: ISS });
    const found = await problemOf(finishAuthorization(pending, { bareCode: "c0de" }, contextOf()));
    expect(found).toMatchObject({ kind: "response-issuer-absent", facts: { url: server.issuer } });
    expect(server.asked).toEqual([]);
  });
});

describe("the exchange", () => {
  const refusal = (error: string, what?: string, status = 400): Answer => ({
    status,
    body: { error, ...(what && { error_description: what }) },
  });

  test.each<[string, Answer, object]>([
    ["invalid_grant", refusal("invalid_grant"), { kind: "code-refused" }],
    ["invalid_client", refusal("invalid_client", undefined, 401), { kind: "client-unknown" }],
    ["invalid_scope", refusal("invalid_scope"), { kind: "scope-refused", facts: { scope: "a" } }],
    ["invalid_target", refusal("invalid_target"), { kind: "resource-refused" }],
    ["AADSTS9010010", refusal("invalid_request", "AADSTS9010010: no"), { kind: "resource-refused" }],
    [
      "another error",
      refusal("strange", "words"),
      { kind: "refused", facts: { error: "strange", what: "words" } },
    ],
  ])("%s -> the problem", async (_condition, answer, problem) => {
    const { pending } = await waiting({ answer, begun: { scope: "a" } });
    expect(await problemOf(finish(pending, { code: "c", state: pending.state }))).toMatchObject(problem);
  });

  test("an error that quotes the secrets of the request -> the problem holds none", async () => {
    const client: ClientRecord = { id: "mine", method: "client_secret_basic", kind: "configured" };
    const server = await authServer(({ form, headers }) => ({
      status: 400,
      body: {
        error: `bad ${form.code}`,
        error_description: `${form.code_verifier} ${headers.authorization} s3cret-words`,
      },
    }));
    const pending = await begin(server.metadata, { client });
    const plan = { clientId: "mine", clientSecret: "s3cret-words" };
    const problem = await problemOf(finish(pending, { code: "c0de-of-user", state: pending.state }, plan));
    const shown = inspect(problem, { depth: 9 });
    expect(problem).toMatchObject({ kind: "refused", facts: { error: "bad [redacted]" } });
    const basic = Buffer.from("mine:s3cret-words").toString("base64");
    for (const secret of ["c0de-of-user", pending.verifier, "s3cret-words", basic])
      expect(shown).not.toContain(secret);
  });

  test("the answer's tokens cannot be used -> the problem holds none of them", async () => {
    const body = { access_token: "secret-access", refresh_token: "secret-refresh", token_type: "mac" };
    const { pending } = await waiting({ answer: { body } });
    const problem = await problemOf(finish(pending, { code: "c", state: pending.state }));
    expect(problem).toMatchObject({ kind: "bad-answer", facts: { what: "its token_type is not Bearer" } });
    expect(inspect(problem, { depth: 9 })).not.toMatch(/secret-/);
  });
});
