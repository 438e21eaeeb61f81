/** Owns: what is stored after a sign-in. */
import { expect, test } from "vitest";
import { SignInProblem } from "../../../../../../workers/connection/auth/model/model.ts";
import { recordOf } from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import { discovered, pendingWith } from "./support.ts";

const TARGET = { server: "linear", url: new URL("https://linear.test/mcp") };
const TOKENS = { access_token: "a", token_type: "bearer" };
const LEAST = {
  version: 1,
  server: "linear",
  url: "https://linear.test/mcp",
  issuer: "https://as.test",
  tokenEndpoint: "https://as.test/token",
  client: { id: "c", method: "none", kind: "dynamic" },
  access_token: "a",
  token_type: "bearer",
  obtainedAt: 7,
};

test("the least answer -> the least record, without keys that are undefined", () => {
  expect(recordOf(TARGET, pendingWith(), TOKENS, 7)).toStrictEqual(LEAST);
});

test("the fullest answer -> everything is in the record", () => {
  const pending = pendingWith({
    scope: "read write",
    discovered: {
      ...discovered({ revocation_endpoint: "https://as.test/revoke" }),
      resource: "https://linear.test/mcp",
      acceptedIssuer: "https://as.test",
    },
  });
  const tokens = { ...TOKENS, refresh_token: "r", expiresAt: 9, scope: "read" };
  expect(recordOf(TARGET, pending, tokens, 7)).toStrictEqual({
    ...LEAST,
    acceptedIssuer: "https://as.test",
    resource: "https://linear.test/mcp",
    revocationEndpoint: "https://as.test/revoke",
    refresh_token: "r",
    expiresAt: 9,
    requestedScope: "read write",
    scope: "read",
  });
});

test("an answer without scope -> the requested one was granted", () => {
  expect(recordOf(TARGET, pendingWith({ scope: "read" }), TOKENS, 7)).toMatchObject({ scope: "read" });
});

test("metadata without a token endpoint -> no-endpoint", () => {
  const metadata = { issuer: "https://as.test" };
  const pending = pendingWith({ discovered: { metadata, foundAt: metadata.issuer, legacy: false } });
  expect(() => recordOf(TARGET, pending, TOKENS, 7)).toThrow(SignInProblem);
});
