/** Owns: how a client proves to the token endpoint who it is. Assertions are verified with node:crypto. */
import { constants, createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  machineTokens,
  refreshTokens,
} from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import type { OAuthPlan } from "../../../../../../workers/connection/config/entry/oauth-values.ts";
import { tempFolder } from "../../../../temp-folder.ts";
import { type AuthServer, authServer, contextOf, discoveredOf, problemOf, recordOf } from "./support.ts";

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
  test.each<[string, Partial<OAuthPlan>, string, RegExp]>([
    ["no PEM", { privateKey: "private words of nobody else's business" }, "oauth.privateKey", /PEM/],
    [
      "a public key",
      { privateKey: createPublicKey(rsa).export({ type: "spki", format: "pem" }).toString() },
      "oauth.privateKey",
      /PEM/,
    ],
    ["an encrypted key", { privateKey: encrypted }, "oauth.privateKey", /encrypted/],
    ["a short RSA key", { privateKey: pemOf(short) }, "oauth.privateKey", /2048/],
    [
      "a curve that no algorithm has",
      { privateKey: pemOf(curve("secp256k1")) },
      "oauth.privateKey",
      /none of/,
    ],
    [
      "an algorithm of another key",
      { privateKey: pemOf(rsa), signingAlg: "ES256" },
      "oauth.signingAlg",
      /RS256/,
    ],
    [
      "an algorithm without a signature",
      { privateKey: pemOf(rsa), signingAlg: "none" },
      "oauth.signingAlg",
      /RS256/,
    ],
    [
      "a file that is missing",
      { privateKeyFile: "/nowhere/key.pem" },
      "oauth.privateKeyFile",
      /no such file/,
    ],
    ["a folder", { privateKeyFile: "/" }, "oauth.privateKeyFile", /folder/],
  ])("%s -> bad-settings without the key, and nothing is sent", async (_condition, plan, key, what) => {
    const on = await server();
    const problem = await problemOf(tokenRequest(plan, on));
    expect(problem).toMatchObject({
      kind: "bad-settings",
      facts: { key, what: expect.stringMatching(what) },
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

  test.each<[string, SignInRecord["client"], Partial<OAuthPlan>, object]>([
    [
      "another client is configured now",
      client({}),
      { clientId: "other", clientSecret: "s" },
      { kind: "bad-settings", facts: { key: "oauth.clientId" } },
    ],
    [
      "another client with a key is configured now",
      client({ method: "private_key_jwt" }),
      { clientId: "other", privateKey: pemOf(p256) },
      { kind: "bad-settings", facts: { key: "oauth.clientId" } },
    ],
    [
      "the configured secret is gone",
      client({}),
      { clientId: "mine" },
      { kind: "bad-settings", facts: { key: "oauth.clientSecret" } },
    ],
    [
      "the configured key is gone",
      client({ method: "private_key_jwt" }),
      { clientId: "mine" },
      { kind: "bad-settings", facts: { key: "oauth.privateKey" } },
    ],
    ["a dynamic client without its secret", client({ kind: "dynamic" }), {}, { kind: "client-unknown" }],
  ])("%s -> the problem, and nothing is sent", async (_condition, who, plan, problem) => {
    const on = await server();
    expect(await problemOf(refreshTokens(recordOf(on, { client: who }), contextOf(plan)))).toMatchObject(
      problem,
    );
    expect(on.asked).toEqual([]);
  });
});
