/** Owns: what a consent says about a server's sign-in and certificates, and to what of it the consent is bound. */
import { describe, expect, test } from "vitest";
import type { ServerDefinition } from "../../../../../../workers/connection/config/entry/definition.ts";
import { applyOverride } from "../../../../../../workers/connection/config/entry/override.ts";
import {
  consentQuestion,
  describeTarget,
  leastChars,
} from "../../../../../../workers/connection/config/trust/question.ts";
import { subjectOf } from "../../../../../../workers/connection/config/trust/records.ts";
import { definition, PROJECT_FILE, PROJECT_PI } from "../support.ts";

const URL = "https://x.y/mcp";
const server = (keys: object, name = "a"): ServerDefinition =>
  definition(name, { url: URL, ...keys }, PROJECT_FILE);
const PEM = "-----BEGIN PRIVATE KEY-----\nMIG\n-----END PRIVATE KEY-----\n";

describe("the question", () => {
  test.each<[object, string]>([
    [{}, ""],
    [{ oauth: {} }, ""],
    [{ oauth: false }, ""],
    [{ auth: "none", oauth: { clientId: "a" } }, ""],
    [{ auth: "oauth" }, "signs in with OAuth"],
    [{ oauth: { clientId: "my id" } }, 'client id "my id"'],
    [{ oauth: { clientId: "a", clientSecret: "s3cret" } }, "client id a; client secret (6 characters)"],
    [{ oauth: { clientSecret: "${S}" } }, "client secret (from $S)"],
    [
      { auth: { CLIENT_ID: "a", CLIENT_SECRET: "!run me" } },
      'client id a; client secret from running "run me"',
    ],
    [
      { oauth: { authServerMetadataUrl: "https://as.evil/m", issuer: "https://as.evil" } },
      "authorization server https://as.evil/m; issuer https://as.evil",
    ],
    [{ oauth: { issuer: "!run me" } }, 'issuer from running "run me"'],
    [{ oauth: { issuer: "https://\u0430s.test" } }, 'issuer "https://\\u{430}s.test"'],
    [{ oauth: { resource: "https://r.test/mcp" } }, "resource https://r.test/mcp"],
    [{ oauth: { resource: false } }, "no resource parameter"],
    [
      { oauth: { redirectUri: "https://evil.test/cb", callbackPort: 5 } },
      "redirect URI https://evil.test/cb; callback port 5",
    ],
    [{ oauth: { redirectUri: "http://localhost:{port}/cb" } }, "redirect URI http://localhost:{port}/cb"],
    [{ oauth: { clientMetadataUrl: "https://c.test/c.json" } }, "client metadata https://c.test/c.json"],
    [
      { oauth: { clientName: "Claude Code", clientUri: "https://c.test", logoUri: "https://c.test/l" } },
      'client name "Claude Code"; client page https://c.test; client picture https://c.test/l',
    ],
    [{ oauth: { clientRegistration: "dcr" } }, "client registration dcr"],
    [{ oauth: { scopes: ["read", "admin"] } }, 'scope "read admin"'],
    [
      { oauth: { authorizationParams: { audience: "https://a.b", hd: "!run me" } } },
      'parameter audience=https://a.b; parameter hd from running "run me"',
    ],
    [
      {
        oauth: {
          grantType: "client_credentials",
          clientId: "a",
          privateKey: PEM,
          keyId: "k",
          signingAlg: "ES256",
        },
      },
      `signs in without you; client id a; private key (${PEM.length} characters); key id k; signing algorithm ES256`,
    ],
    [{ caFile: "./ca.pem" }, "certificate authorities of ./ca.pem"],
    [{ caFile: "${HOME}/x y.pem" }, 'certificate authorities of "${HOME}/x y.pem"'],
  ])("%j -> %s", (keys, text) => {
    expect(describeTarget(server(keys))).toBe(text === "" ? URL : `${URL} (${text})`);
  });

  test("a local server -> nothing about a sign-in", () => {
    const local = definition("a", { command: "x", oauth: { clientId: "a" } }, PROJECT_FILE);
    expect(describeTarget(local)).toBe("x");
  });

  test("variables of the sign-in -> they go to its authorization server, those of headers to the server", () => {
    const both = server({
      headers: { A: "${A}" },
      oauth: { clientId: "${B}", clientSecret: "x${C}", scope: "!d" },
    });
    expect(consentQuestion(both)).toContain(
      ", sends $A of your environment to https://x.y, sends $B, $C of your environment to its authorization server, from",
    );
    expect(consentQuestion(server({ oauth: { clientSecret: "${B}" } }))).toContain(
      "), sends $B of your environment to its authorization server, from /work/app/.mcp.json",
    );
  });

  test("the user's own keys of a server that the project enables -> shown too", () => {
    const off = definition("a", {
      url: URL,
      enabled: false,
      oauth: { skipIssuerMetadataValidation: true, privateKeyFile: "~/k", assertionFile: "/t" },
    });
    expect(describeTarget(applyOverride(off, { enabled: true }, PROJECT_PI))).toBe(
      `${URL} (any issuer; private key file ~/k; assertion file /t)`,
    );
  });

  test.each<object>([
    { scope: "x".repeat(9_000) },
    { authorizationParams: { ["x".repeat(9_000)]: "" } },
    { authorizationParams: { a: "x".repeat(9_000) } },
    { clientId: `!${"x".repeat(9_000)}` },
    { clientSecret: "x".repeat(9_000), privateKey: "!x" },
    { clientId: "a", clientRegistration: "auto", grantType: "authorization_code", resource: false },
  ])("a sign-in of any length -> its lower bound is no longer than the question", (oauth) => {
    const one = server({ oauth, caFile: "./a" });
    const question = consentQuestion(one);
    expect(leastChars(one)).toBeLessThanOrEqual(question.length);
    if (question.length > 9_000) expect(leastChars(one)).toBeGreaterThan(9_000);
  });
});

describe("what a consent is bound to", () => {
  const VALUES: Record<string, unknown> = {
    clientId: "a",
    clientSecret: "s",
    scope: "s",
    redirectUri: "https://a.test/cb",
    callbackPort: 5,
    clientName: "n",
    clientUri: "https://a.test",
    logoUri: "https://a.test",
    clientMetadataUrl: "https://a.test/c",
    clientRegistration: "dcr",
    authServerMetadataUrl: "https://a.test/m",
    issuer: "https://a.test",
    skipIssuerMetadataValidation: true,
    resource: "https://a.test",
    authorizationParams: { a: "b" },
    privateKey: PEM,
    privateKeyFile: "/k",
    keyId: "k",
    signingAlg: "ES256",
    assertionFile: "/t",
  };

  test.each(Object.entries(VALUES))("another oauth.%s -> another hash", (key, value) => {
    expect(subjectOf(server({ oauth: { [key]: value } }))).not.toBe(subjectOf(server({})));
  });

  test.each<object>([
    { oauth: false },
    { auth: "oauth" },
    { auth: "none" },
    { caFile: "./ca.pem" },
    { roots: true },
  ])("%j -> another hash", (keys) => {
    expect(subjectOf(server(keys))).not.toBe(subjectOf(server({})));
  });

  test("the same plan in another spelling -> the same hash", () => {
    const own = subjectOf(server({ oauth: { scope: "a b", clientId: "c" } }));
    expect(subjectOf(server({ oauth: { clientId: "c", scopes: ["a", "b"] } }))).toBe(own);
  });
});
