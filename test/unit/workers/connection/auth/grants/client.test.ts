/** Owns: which client signs in, and what is registered. */

import { constants, createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import type { GrantContext } from "../../../../../../workers/connection/auth/grants/ask.ts";
import { clientFor } from "../../../../../../workers/connection/auth/grants/client.ts";
import {
  machineTokens,
  refreshTokens,
} from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import {
  type ClientRecord,
  SignInProblem,
  type SignInRecord,
} from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-keys.ts";
import { CLIENT_METADATA_URL } from "../../../../../../workers/connection/config/entry/settings.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import {
  type Answer,
  type AuthServer,
  authServer,
  contextOf,
  discoveredOf,
  problemOf,
  recordOf,
} from "./support.ts";

const tokens = { body: { access_token: "machine-token", token_type: "Bearer" } };
const server = (): Promise<AuthServer> => authServer(() => tokens);

/** Signs in as a machine, and gives the token request. */
async function tokenRequest(plan: Partial<OAuthPlan>, on?: AuthServer) {
  const asked = on ?? (await server());
  const discovered = discoveredOf(asked.metadata);
  await machineTokens(
    { discovered, scope: undefined },
    contextOf({ grantType: "client_credentials", clientId: "machine", ...plan }),
  );
  const request = asked.asked.at(-1);
  if (!request) throw new Error("nothing was asked");
  return { ...request, issuer: asked.issuer };
}

const decoded = (part = ""): Record<string, unknown> =>
  JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;

const pemOf = (key: KeyObject, type: "pkcs8" | "pkcs1" | "sec1" = "pkcs8"): string =>
  key.export({ type, format: "pem" }).toString();

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const curve = (namedCurve: string): KeyObject => generateKeyPairSync("ec", { namedCurve }).privateKey;
const BEARER = { grantType: "jwt_bearer", assertion: "a.b.c" } as const;
const p256 = curve("P-256");
const ed25519 = generateKeyPairSync("ed25519").privateKey;

describe("a secret", () => {
  test("Basic -> both parts are form-encoded, so that servers that decode less understand them, too", async () => {
    const plan = { clientId: "9f-1.a_b", clientSecret: "a b:c%/ü+" };
    const { headers, form } = await tokenRequest(plan);
    const [scheme, credentials = ""] = headers.authorization?.split(" ") ?? [];
    expect(scheme).toBe("Basic");
    expect(Buffer.from(credentials, "base64").toString()).toBe("9f-1.a_b:a%20b%3Ac%25%2F%C3%BC%2B");
    expect(form).toEqual({ grant_type: "client_credentials" });
  });

  test("post -> id and secret are in the form, not in a header", async () => {
    const on = await authServer(() => tokens, {
      token_endpoint_auth_methods_supported: ["client_secret_post"],
    });
    const { headers, form } = await tokenRequest({ clientSecret: "a b" }, on);
    expect(headers.authorization).toBeUndefined();
    expect(form).toEqual({ grant_type: "client_credentials", client_id: "machine", client_secret: "a b" });
  });

  test("a machine without secret and key -> bad-settings, and nothing is sent", async () => {
    const on = await server();
    const problem = await problemOf(tokenRequest({}, on));
    expect(problem).toMatchObject({ kind: "bad-settings", facts: { key: "oauth.clientSecret" } });
    expect(on.asked).toEqual([]);
  });

  test("a machine without an id -> bad-settings", async () => {
    const { metadata } = await server();
    const asked = { discovered: discoveredOf(metadata), scope: undefined };
    expect(
      await problemOf(
        machineTokens(asked, contextOf({ grantType: "client_credentials", clientSecret: "s" })),
      ),
    ).toMatchObject({
      kind: "bad-settings",
      facts: { key: "oauth.clientId" },
    });
  });

  test("the only supported method is none -> a machine needs a secret that can be sent", async () => {
    const on = await authServer(() => tokens, { token_endpoint_auth_methods_supported: ["none"] });
    expect(await problemOf(tokenRequest({ clientSecret: "s" }, on))).toMatchObject({ kind: "bad-settings" });
  });
});

describe("a signed assertion", () => {
  interface Row {
    key: KeyObject;
    signingAlg?: string;
    alg: string;
  }

  function isSigned(alg: string, key: KeyObject, data: string, signature: string): boolean {
    const hash = alg === "EdDSA" || alg === "Ed25519" ? null : `sha${alg.slice(2)}`;
    const padding = alg.startsWith("PS") ? { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } : {};
    const form = { key: createPublicKey(key), dsaEncoding: "ieee-p1363" as const, ...padding };
    return verify(hash, Buffer.from(data), form, Buffer.from(signature, "base64url"));
  }

  test.each<Row>([
    { key: rsa, alg: "RS256" },
    { key: rsa, signingAlg: "RS512", alg: "RS512" },
    { key: rsa, signingAlg: "PS256", alg: "PS256" },
    { key: p256, alg: "ES256" },
    { key: curve("P-384"), signingAlg: "ES384", alg: "ES384" },
    { key: curve("P-521"), alg: "ES512" },
    { key: ed25519, alg: "EdDSA" },
    { key: ed25519, signingAlg: "Ed25519", alg: "Ed25519" },
  ])("a key for $alg, configured $signingAlg -> the signature holds", async ({ key, signingAlg, alg }) => {
    const plan = { privateKey: pemOf(key), keyId: "key-1", ...(signingAlg && { signingAlg }) };
    const { form, headers, issuer } = await tokenRequest(plan);
    expect(headers.authorization).toBeUndefined();
    expect(form).toMatchObject({
      client_id: "machine",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    });
    const [header, claims, signature = ""] = form.client_assertion?.split(".") ?? [];
    expect(decoded(header)).toEqual({ alg, kid: "key-1" });
    const { iat, exp, jti, ...rest } = decoded(claims);
    expect(rest).toEqual({ iss: "machine", sub: "machine", aud: issuer });
    expect(Number(exp) - Number(iat)).toBe(120);
    expect(jti).toMatch(/^[\w-]{43}$/);
    expect(isSigned(alg, key, `${header}.${claims}`, signature)).toBe(true);
  });

  test("two requests -> two assertions", async () => {
    const plan = { privateKey: pemOf(p256) };
    const jtiOf = async () => decoded((await tokenRequest(plan)).form.client_assertion?.split(".")[1]).jti;
    expect(await jtiOf()).not.toBe(await jtiOf());
  });

  test.each([
    ["a PEM in one line, as variables hold it", pemOf(p256).replaceAll("\n", "\\n")],
    ["a PEM with a byte-order mark", `\uFEFF${pemOf(p256)}`],
    ["PKCS #1", pemOf(rsa, "pkcs1")],
    ["SEC 1", pemOf(p256, "sec1")],
  ])("%s -> it is read", async (_condition, privateKey) => {
    expect((await tokenRequest({ privateKey })).form.client_assertion).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  test("a file -> its key is read anew for each request", async () => {
    const privateKeyFile = join(await tempFolder(), "key.pem");
    const algOf = async () =>
      decoded((await tokenRequest({ privateKeyFile })).form.client_assertion?.split(".")[0]).alg;
    await writeFile(privateKeyFile, pemOf(p256));
    expect(await algOf()).toBe("ES256");
    await writeFile(privateKeyFile, pemOf(rsa));
    expect(await algOf()).toBe("RS256");
  });

  const encrypted = p256
    .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" })
    .toString();
  const short = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  const publicKey = createPublicKey(rsa).export({ type: "spki", format: "pem" }).toString();
  test.each<[string, Partial<OAuthPlan>, string, RegExp]>([
    ["no PEM", { privateKey: "private words of nobody else's business" }, "privateKey", /PEM/],
    ["a public key", { privateKey: publicKey }, "privateKey", /PEM/],
    ["an encrypted key", { privateKey: encrypted }, "privateKey", /encrypted/],
    ["a short RSA key", { privateKey: pemOf(short) }, "privateKey", /2048/],
    ["a curve that no algorithm has", { privateKey: pemOf(curve("secp256k1")) }, "privateKey", /is not RSA/],
    ["an algorithm of another key", { privateKey: pemOf(rsa), signingAlg: "ES256" }, "signingAlg", /RS256/],
    ["no signature", { privateKey: pemOf(rsa), signingAlg: "none" }, "signingAlg", /RS256/],
    ["a file that is missing", { privateKeyFile: "/nowhere/key.pem" }, "privateKeyFile", /no such file/],
    ["a folder", { privateKeyFile: "/" }, "privateKeyFile", /folder/],
  ])("%s -> bad-settings without the key, and nothing is sent", async (_condition, plan, key, what) => {
    const on = await server();
    const problem = await problemOf(tokenRequest(plan, on));
    expect(problem).toMatchObject({
      kind: "bad-settings",
      facts: { key: `oauth.${key}`, what: expect.stringMatching(what) },
    });
    expect(on.asked).toEqual([]);
    if (plan.privateKey) expect(inspect(problem, { depth: 9 })).not.toContain(plan.privateKey.slice(30, 45));
  });
});

describe("an assertion in a file", () => {
  test("it is sent as it is, and read anew for each request", async () => {
    const assertionFile = join(await tempFolder(), "token");
    await writeFile(assertionFile, "a.b.c\n");
    expect((await tokenRequest({ assertionFile })).form).toMatchObject({
      client_id: "machine",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: "a.b.c",
    });
    await writeFile(assertionFile, "\uFEFFd.e.f");
    expect((await tokenRequest({ assertionFile })).form.client_assertion).toBe("d.e.f");
  });

  test("a key beside it -> the key signs", async () => {
    const plan = { privateKey: pemOf(p256), assertionFile: "/nowhere" };
    expect((await tokenRequest(plan)).form.client_assertion).toMatch(/^ey/);
  });

  test.each([
    ["words", "not an assertion"],
    ["nothing", ""],
    ["20,000 characters", `a.b.${"c".repeat(20_000)}`],
    ["100,000 bytes", "x".repeat(100_000)],
  ])("the file has %s -> bad-settings without its words", async (_condition, text) => {
    const folder = join(await tempFolder(), "of");
    await mkdir(folder);
    const assertionFile = join(folder, "token");
    await writeFile(assertionFile, text);
    const on = await server();
    const problem = await problemOf(tokenRequest({ assertionFile }, on));
    expect(problem).toMatchObject({ kind: "bad-settings", facts: { key: "oauth.assertionFile" } });
    expect(on.asked).toEqual([]);
    if (text !== "") expect(inspect(problem, { depth: 9 })).not.toContain(text.slice(0, 200));
  });
});

describe("the client of a stored sign-in", () => {
  const client = (more: Partial<SignInRecord["client"]>): SignInRecord["client"] => ({
    id: "mine",
    method: "client_secret_post",
    kind: "configured",
    ...more,
  });

  test("a dynamic client -> its own secret, not that of the configuration", async () => {
    const on = await server();
    const record = recordOf(on, { client: client({ kind: "dynamic", secret: "own" }) });
    await refreshTokens(record, contextOf({ clientId: "other", clientSecret: "configured" }));
    expect(on.asked[0]?.form).toMatchObject({ client_id: "mine", client_secret: "own" });
  });

  const KEY = { method: "private_key_jwt" } as const;
  test.each<[string, Partial<ClientRecord>, Partial<OAuthPlan>, key: string | undefined]>([
    ["another client is configured now", {}, { clientId: "other", clientSecret: "s" }, "oauth.clientId"],
    ["another client with a key", KEY, { clientId: "other", privateKey: pemOf(p256) }, "oauth.clientId"],
    ["the configured secret is gone", {}, { clientId: "mine" }, "oauth.clientSecret"],
    ["the configured key is gone", KEY, { clientId: "mine" }, "oauth.privateKey"],
    ["a dynamic client without its secret", { kind: "dynamic" }, {}, undefined],
  ])("%s -> the problem, and nothing is sent", async (_condition, who, plan, key) => {
    const on = await server();
    const problem = await problemOf(refreshTokens(recordOf(on, { client: client(who) }), contextOf(plan)));
    expect(problem).toMatchObject(
      key === undefined ? { kind: "client-unknown" } : { kind: "bad-settings", facts: { key } },
    );
    expect(on.asked).toEqual([]);
  });
});

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
  forDevice?: boolean;
}

const clientOf = (server: AuthServer, context: GrantContext, wanted: Wanted = {}): Promise<ClientRecord> =>
  clientFor(
    {
      discovered: discoveredOf(server.metadata),
      redirectUri: wanted.redirectUri ?? REDIRECT,
      scope: wanted.scope,
      stored: wanted.stored,
      reuse: wanted.reuse ?? true,
      forDevice: wanted.forDevice === true,
    },
    context,
  );

const bodiesOf = ({ asked }: AuthServer): Record<string, unknown>[] =>
  asked.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

const document = "https://me.example/client.json";

test("the package's document -> names what a sign-in asks for, and its own address once there is one", async () => {
  const path = join(import.meta.dirname, "..", "..", "..", "..", "..", "..", "oauth-client.json");
  const written = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  const on = await authServer(() => registered);
  await clientOf(on, contextOf(), { forDevice: true });
  const { redirect_uris: _free, ...same } = bodiesOf(on)[0] ?? {};
  expect(written).toMatchObject(same);
  expect(written.redirect_uris).toEqual(["http://127.0.0.1/callback", "http://localhost/callback"]);
  const example = "https://example.com/oauth-client.json";
  expect(written.client_id).toBe(CLIENT_METADATA_URL === "" ? example : CLIENT_METADATA_URL);
});

describe("the order of clients", () => {
  const KNOWN = { client_id_metadata_document_supported: true };
  const DOCUMENT = { clientMetadataUrl: document };
  const OTHER_URI = "http://127.0.0.1:1/callback";
  const secret = (msLeft: number) => ({ ...stored, secret: "s", secretExpiresAt: Date.now() + msLeft });
  type Given = { plan?: Partial<OAuthPlan>; metadata?: object; wanted?: Wanted };
  const ROWS: [condition: string, given: Given, id: string, kind: ClientRecord["kind"]][] = [
    [
      "a configured id, all else there too",
      { plan: { clientId: "mine", ...DOCUMENT }, metadata: KNOWN, wanted: { stored } },
      "mine",
      "configured",
    ],
    ["a stored client", { wanted: { stored } }, "stored", "dynamic"],
    [
      "a stored client of another redirect URI",
      { wanted: { stored, redirectUri: OTHER_URI } },
      "new",
      "dynamic",
    ],
    ["a stored client that shall not be used again", { wanted: { stored, reuse: false } }, "new", "dynamic"],
    ["a stored client whose secret has expired", { wanted: { stored: secret(-1) } }, "new", "dynamic"],
    ["a stored client whose secret holds", { wanted: { stored: secret(60_000) } }, "stored", "dynamic"],
    [
      "a stored client that the configuration named once",
      { wanted: { stored: { ...stored, kind: "configured" } } },
      "new",
      "dynamic",
    ],
    ["a document that the server knows", { plan: DOCUMENT, metadata: KNOWN }, document, "metadata-document"],
    ["a document that the server does not advertise", { plan: DOCUMENT }, "new", "dynamic"],
    [
      "a document that the configuration insists on, beside a stored client",
      { plan: { ...DOCUMENT, clientRegistration: "cimd" }, wanted: { stored } },
      document,
      "metadata-document",
    ],
    [
      "a document, but registration is configured",
      { plan: { ...DOCUMENT, clientRegistration: "dcr" }, metadata: KNOWN },
      "new",
      "dynamic",
    ],
    ["nothing", {}, "new", "dynamic"],
  ];

  test.each(ROWS)(
    "%s -> the client",
    async (_condition, { plan = {}, metadata = {}, wanted = {} }, id, kind) => {
      const server = await authServer(() => registered, metadata);
      expect(await clientOf(server, contextOf(plan), wanted)).toMatchObject({ id, kind, method: "none" });
      expect(server.asked).toHaveLength(id === "new" ? 1 : 0);
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
    ["an assertion", { clientId: "mine", assertion: "a.b.c" }, undefined, "private_key_jwt"],
    ["an assertion that is the grant", { clientId: "mine", ...BEARER }, undefined, "none"],
    [
      "a secret beside it",
      { clientId: "mine", clientSecret: "s", ...BEARER },
      undefined,
      "client_secret_basic",
    ],
    ["a key beside it", { clientId: "mine", privateKeyFile: "/k", ...BEARER }, undefined, "private_key_jwt"],
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

  const body = (fields: object): Answer => ({ status: 201, body: fields });
  test.each<[string, Answer, kind: string, facts?: object]>([
    ["invalid_redirect_uri", refusal("invalid_redirect_uri"), "redirect-refused", { url: REDIRECT }],
    [
      "another error that speaks of the redirect URI",
      refusal("invalid_client_metadata", "redirect_uri must be https or localhost"),
      "redirect-refused",
    ],
    ["403 without JSON", { status: 403, type: "text/html", body: "<h1>no</h1>" }, "known-clients-only"],
    [
      "403 with an error",
      { ...refusal("access_denied", "Trusted hosts"), status: 403 },
      "known-clients-only",
    ],
    ["401", { status: 401, headers: { "www-authenticate": "Bearer" }, body: "" }, "known-clients-only"],
    ["404", { status: 404, body: "not found" }, "no-registration"],
    ["405", { status: 405, body: "" }, "no-registration"],
    ["an unknown error", refusal("strange"), "registration-refused", { what: "strange" }],
    ["503", { status: 503, body: "" }, "unavailable", { status: 503 }],
    ["429", { status: 429, body: { error: "slow" } }, "unavailable", { status: 429 }],
    ["400 without an error", { status: 400, body: "no" }, "bad-answer", { status: 400 }],
    ["no JSON", { status: 201, body: "<html>" }, "bad-answer", { what: "it is not JSON" }],
    ["no client_id", body({}), "bad-answer", { what: "its client_id is missing or wrong" }],
    ["a client_id with a newline", body({ client_id: "a\nb" }), "bad-answer"],
    ["a client_id of 3,000 characters", body({ client_id: "a".repeat(3_000) }), "bad-answer"],
    [
      "a secret of 5,000 characters",
      body({ client_id: "a", client_secret: "s".repeat(5_000), ...expires }),
      "bad-answer",
    ],
  ])("%s -> the problem, and one request", async (_condition, answer, kind, facts = {}) => {
    const server = await authServer(() => answer);
    expect(await problemOf(clientOf(server, contextOf()))).toMatchObject({ kind, facts });
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
