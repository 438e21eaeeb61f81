/** Owns: which client signs in, and what is registered. */
import { describe, expect, test } from "vitest";
import type { GrantContext } from "../../../../../../workers/connection/auth/grants/ask.ts";
import { clientFor } from "../../../../../../workers/connection/auth/grants/client.ts";
import { type ClientRecord, SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";
import { type Answer, type AuthServer, authServer, contextOf, discoveredOf, problemOf } from "./support.ts";

const REDIRECT = "http://127.0.0.1:4711/callback";
const registered = { status: 201, body: { client_id: "new" } };

const stored: ClientRecord = {
  id: "stored",
  method: "none",
  kind: "dynamic",
  redirectUris: [REDIRECT],
};

interface Wanted {
  scope?: string;
  redirectUri?: string;
  stored?: ClientRecord;
  reuse?: boolean;
}

const clientOf = (server: AuthServer, context: GrantContext, wanted: Wanted = {}): Promise<ClientRecord> =>
  clientFor(
    {
      discovered: discoveredOf(server.metadata),
      redirectUri: wanted.redirectUri ?? REDIRECT,
      scope: wanted.scope,
      stored: wanted.stored,
      reuse: wanted.reuse ?? true,
    },
    context,
  );

const bodiesOf = ({ asked }: AuthServer): Record<string, unknown>[] =>
  asked.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

const document = "https://me.example/client.json";

describe("the order of clients", () => {
  const ROWS: [
    condition: string,
    given: { plan?: Partial<OAuthPlan>; metadata?: object; wanted?: Wanted },
    outcome: { id: string; kind: ClientRecord["kind"]; method?: ClientRecord["method"] },
  ][] = [
    [
      "a configured id, all else there too",
      {
        plan: { clientId: "mine", clientMetadataUrl: document },
        metadata: { client_id_metadata_document_supported: true },
        wanted: { stored },
      },
      { id: "mine", kind: "configured", method: "none" },
    ],
    ["a stored client", { wanted: { stored } }, { id: "stored", kind: "dynamic" }],
    [
      "a stored client of another redirect URI",
      { wanted: { stored, redirectUri: "http://127.0.0.1:1/callback" } },
      { id: "new", kind: "dynamic" },
    ],
    [
      "a stored client that shall not be used again",
      { wanted: { stored, reuse: false } },
      { id: "new", kind: "dynamic" },
    ],
    [
      "a stored client whose secret has expired",
      { wanted: { stored: { ...stored, secret: "s", secretExpiresAt: Date.now() - 1 } } },
      { id: "new", kind: "dynamic" },
    ],
    [
      "a stored client whose secret holds",
      { wanted: { stored: { ...stored, secret: "s", secretExpiresAt: Date.now() + 60_000 } } },
      { id: "stored", kind: "dynamic" },
    ],
    [
      "a stored client that the configuration named once",
      { wanted: { stored: { ...stored, kind: "configured" } } },
      { id: "new", kind: "dynamic" },
    ],
    [
      "a metadata document that the server knows",
      { plan: { clientMetadataUrl: document }, metadata: { client_id_metadata_document_supported: true } },
      { id: document, kind: "metadata-document", method: "none" },
    ],
    [
      "a metadata document that the server does not advertise",
      { plan: { clientMetadataUrl: document } },
      { id: "new", kind: "dynamic" },
    ],
    [
      "a metadata document that the configuration insists on, beside a stored client",
      { plan: { clientMetadataUrl: document, clientRegistration: "cimd" }, wanted: { stored } },
      { id: document, kind: "metadata-document" },
    ],
    [
      "a metadata document, but registration is configured",
      {
        plan: { clientMetadataUrl: document, clientRegistration: "dcr" },
        metadata: { client_id_metadata_document_supported: true },
      },
      { id: "new", kind: "dynamic" },
    ],
    ["nothing", {}, { id: "new", kind: "dynamic", method: "none" }],
  ];

  test.each(ROWS)(
    "%s -> the client",
    async (_condition, { plan = {}, metadata = {}, wanted = {} }, outcome) => {
      const server = await authServer(() => registered, metadata);
      expect(await clientOf(server, contextOf(plan), wanted)).toMatchObject(outcome);
      expect(server.asked).toHaveLength(outcome.id === "new" ? 1 : 0);
    },
  );

  test('"cimd" without its URL -> bad-settings', async () => {
    const server = await authServer(() => registered);
    expect(await problemOf(clientOf(server, contextOf({ clientRegistration: "cimd" })))).toMatchObject({
      kind: "bad-settings",
      facts: { key: "oauth.clientMetadataUrl" },
    });
  });
});

describe("the method of a configured client", () => {
  const secret = { clientId: "mine", clientSecret: "secret" };
  test.each<[string, Partial<OAuthPlan>, string[] | undefined, ClientRecord["method"]]>([
    ["no secret", { clientId: "mine" }, ["client_secret_basic"], "none"],
    ["a secret, nothing advertised", secret, undefined, "client_secret_basic"],
    [
      "a secret, both advertised",
      secret,
      ["client_secret_post", "client_secret_basic"],
      "client_secret_basic",
    ],
    ["a secret, only post", secret, ["none", "client_secret_post"], "client_secret_post"],
    ["a secret, only none", secret, ["none"], "none"],
    ["a secret, nothing that is known here", secret, ["tls_client_auth"], "client_secret_basic"],
    ["a key beside a secret", { ...secret, privateKey: "pem" }, ["client_secret_basic"], "private_key_jwt"],
    ["a file with an assertion", { clientId: "mine", assertionFile: "/a" }, undefined, "private_key_jwt"],
  ])("%s -> the method", async (_condition, plan, supported, method) => {
    const more = supported ? { token_endpoint_auth_methods_supported: supported } : {};
    const server = await authServer(() => registered, more);
    const client = await clientOf(server, contextOf(plan));
    expect(client).toEqual({ id: "mine", kind: "configured", method });
  });
});

describe("registration", () => {
  test("a native client -> all that the server must know, and the record without the answer's rest", async () => {
    const server = await authServer(() => ({
      status: 201,
      body: { client_id: "new", client_name: "other" },
    }));
    const plan = { clientUri: "https://me.example", logoUri: "https://me.example/logo.png" };
    const client = await clientOf(server, contextOf(plan), { scope: "a b" });
    expect(bodiesOf(server)).toEqual([
      {
        application_type: "native",
        client_name: "Pi (pi-mcp-threads)",
        redirect_uris: [REDIRECT],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
        client_uri: "https://me.example",
        logo_uri: "https://me.example/logo.png",
        scope: "a b",
      },
    ]);
    expect(server.asked[0]?.headers["content-type"]).toBe("application/json");
    expect(client).toEqual({
      id: "new",
      method: "none",
      kind: "dynamic",
      redirectUris: [REDIRECT],
      registeredAt: expect.any(Number),
    });
  });

  test("an https redirect URI -> a web client; the configured name is sent", async () => {
    const server = await authServer(() => registered);
    await clientOf(server, contextOf({ clientName: "Mine" }), { redirectUri: "https://me.example/cb" });
    expect(bodiesOf(server)[0]).toMatchObject({ application_type: "web", client_name: "Mine" });
  });

  test.each<[string[] | undefined, string]>([
    [undefined, "none"],
    [["client_secret_basic", "client_secret_post", "none"], "none"],
    [["client_secret_basic", "client_secret_post"], "client_secret_post"],
    [["client_secret_basic"], "client_secret_basic"],
    [["private_key_jwt"], "none"],
  ])("the server supports %j -> %s is asked for", async (supported, method) => {
    const more = supported ? { token_endpoint_auth_methods_supported: supported } : {};
    const server = await authServer(() => registered, more);
    await clientOf(server, contextOf());
    expect(bodiesOf(server)[0]).toMatchObject({ token_endpoint_auth_method: method });
  });

  const expires = { client_secret_expires_at: 0 };
  test.each<[string, object, Partial<ClientRecord>]>([
    [
      "a secret and its method",
      { client_secret: "s", token_endpoint_auth_method: "client_secret_post", ...expires },
      { secret: "s", method: "client_secret_post" },
    ],
    [
      "a secret without a method",
      { client_secret: "s", ...expires },
      { secret: "s", method: "client_secret_basic" },
    ],
    [
      "a secret that is not needed",
      { client_secret: "s", token_endpoint_auth_method: "none", ...expires },
      { method: "none" },
    ],
    ["a method without a secret", { token_endpoint_auth_method: "client_secret_basic" }, { method: "none" }],
    [
      "a secret that expires",
      { client_secret: "s", client_secret_expires_at: 2_000_000_000 },
      { secretExpiresAt: 2_000_000_000_000 },
    ],
  ])("the answer has %s -> the record", async (_condition, more, outcome) => {
    const server = await authServer(() => ({ status: 201, body: { client_id: "new", ...more } }));
    expect(await clientOf(server, contextOf())).toMatchObject(outcome);
  });

  test("a secret without an end -> the record has none", async () => {
    const server = await authServer(() => ({
      status: 201,
      body: { client_id: "n", client_secret: "s", ...expires },
    }));
    expect(await clientOf(server, contextOf())).not.toHaveProperty("secretExpiresAt");
  });

  const refusal = (error: string, description?: string): Answer => ({
    status: 400,
    body: { error, ...(description && { error_description: description }) },
  });

  test("invalid_client_metadata -> once more without scope and what is optional", async () => {
    const server = await authServer(
      (_asked, nth) => (nth === 0 ? refusal("invalid_client_metadata", "no such scope") : registered),
      { grant_types_supported: ["authorization_code"] },
    );
    const context = contextOf({ logoUri: "https://me.example/logo.png" });
    expect(await clientOf(server, context, { scope: "a" })).toMatchObject({ id: "new" });
    expect(bodiesOf(server)[1]).toEqual({
      application_type: "native",
      client_name: "Pi (pi-mcp-threads)",
      redirect_uris: [REDIRECT],
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    });
    expect(context.notes).toHaveLength(1);
  });

  test("invalid_client_metadata twice -> refused after two requests", async () => {
    const server = await authServer(() => refusal("invalid_client_metadata", "no"));
    expect(await problemOf(clientOf(server, contextOf(), { scope: "a" }))).toMatchObject({
      kind: "registration-refused",
      facts: { url: server.issuer, what: "no" },
    });
    expect(server.asked).toHaveLength(2);
  });

  test("invalid_client_metadata for the least -> it is not sent again", async () => {
    const server = await authServer(() => refusal("invalid_client_metadata"));
    expect(await problemOf(clientOf(server, contextOf()))).toMatchObject({ kind: "registration-refused" });
    expect(server.asked).toHaveLength(1);
  });

  test.each<[string, Answer, object]>([
    [
      "invalid_redirect_uri",
      refusal("invalid_redirect_uri"),
      { kind: "redirect-refused", facts: { url: REDIRECT } },
    ],
    [
      "another error that speaks of the redirect URI",
      refusal("invalid_client_metadata", "redirect_uri must be https or localhost"),
      { kind: "redirect-refused" },
    ],
    [
      "403 without JSON",
      { status: 403, type: "text/html", body: "<h1>no</h1>" },
      { kind: "known-clients-only" },
    ],
    [
      "403 with an error",
      { ...refusal("access_denied", "Trusted hosts"), status: 403 },
      { kind: "known-clients-only" },
    ],
    [
      "401",
      { status: 401, headers: { "www-authenticate": "Bearer" }, body: "" },
      { kind: "known-clients-only" },
    ],
    ["404", { status: 404, body: "not found" }, { kind: "no-registration" }],
    ["405", { status: 405, body: "" }, { kind: "no-registration" }],
    ["an unknown error", refusal("strange"), { kind: "registration-refused", facts: { what: "strange" } }],
    ["503", { status: 503, body: "" }, { kind: "unavailable", facts: { status: 503 } }],
    ["429", { status: 429, body: { error: "slow" } }, { kind: "unavailable", facts: { status: 429 } }],
    ["400 without an error", { status: 400, body: "no" }, { kind: "bad-answer", facts: { status: 400 } }],
    ["no JSON", { status: 201, body: "<html>" }, { kind: "bad-answer", facts: { what: "it is not JSON" } }],
    [
      "no client_id",
      { status: 201, body: {} },
      { kind: "bad-answer", facts: { what: "its client_id is missing or wrong" } },
    ],
    ["a client_id with a newline", { status: 201, body: { client_id: "a\nb" } }, { kind: "bad-answer" }],
    [
      "a client_id of 3,000 characters",
      { status: 201, body: { client_id: "a".repeat(3_000) } },
      { kind: "bad-answer" },
    ],
    [
      "a secret of 5,000 characters",
      {
        status: 201,
        body: { client_id: "a", client_secret: "s".repeat(5_000), client_secret_expires_at: 0 },
      },
      { kind: "bad-answer" },
    ],
  ])("%s -> the problem, and one request", async (_condition, answer, problem) => {
    const server = await authServer(() => answer);
    expect(await problemOf(clientOf(server, contextOf()))).toMatchObject(problem);
    expect(server.asked).toHaveLength(1);
  });

  test("a page under 403 that the requests refuse -> known clients only", async () => {
    const server = await authServer(() => ({ status: 403, body: "" }));
    const context = contextOf();
    const refusing: GrantContext = {
      ...context,
      requests: {
        fetch: async (url) => {
          throw new SignInProblem("bad-answer", { url, status: 403, what: "HTML in the place of JSON" });
        },
      },
    };
    expect(await problemOf(clientOf(server, refusing))).toMatchObject({ kind: "known-clients-only" });
  });

  test("no registration_endpoint -> no-registration names the issuer", async () => {
    const server = await authServer(() => registered);
    const { registration_endpoint: _none, ...metadata } = server.metadata;
    expect(await problemOf(clientOf({ ...server, metadata }, contextOf()))).toMatchObject({
      kind: "no-registration",
      facts: { url: server.issuer },
    });
  });
});
