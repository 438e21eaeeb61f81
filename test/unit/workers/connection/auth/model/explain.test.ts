/** Owns: the sentence and the remedy of each failure of a sign-in, as people read them. */
import { describe, expect, test } from "vitest";
import { describeError } from "../../../../../../src/shared/protocol/errors.ts";
import {
  explainProblem,
  type ProblemFacts,
  SignInProblem,
  type SignInProblemKind,
} from "../../../../../../workers/connection/auth/model/model.ts";

const ISSUER = "https://auth.example.com";

const FACTS: Record<SignInProblemKind, ProblemFacts> = {
  "not-signed-in": {},
  "no-sign-in": {},
  expired: {},
  "refresh-refused": {},
  "fresh-token-refused": {},
  "binding-wanted": {},
  "no-dpop": { url: ISSUER },
  "not-bound": { url: `${ISSUER}/token` },
  "proof-refused": { url: `${ISSUER}/token`, error: "use_dpop_nonce" },
  moved: { found: "https://new.example.com" },
  "scope-wanted": { scope: "write" },
  "scope-loop": { scope: "write" },
  "scope-refused": { scope: "write" },
  "no-registration": { url: ISSUER },
  "known-clients-only": { url: ISSUER },
  "registration-refused": { url: ISSUER, what: "no redirect" },
  "client-unknown": {},
  "issuer-differs": { expected: ISSUER, found: "https://other.example.com" },
  "resource-differs": { expected: "https://a.example.com/mcp", found: "https://b.example.com" },
  "resource-refused": {},
  "pkce-refused": {},
  "no-endpoint": { what: "token_endpoint", url: ISSUER },
  "no-device-code": {},
  "port-in-use": { port: 3118 },
  "redirect-refused": { url: "http://127.0.0.1:3118/callback" },
  "state-wrong": {},
  "response-issuer-absent": { url: ISSUER },
  "response-issuer-wrong": { expected: ISSUER, found: "https://other.example.com" },
  denied: {},
  "code-refused": {},
  "timed-out": {},
  cancelled: {},
  unreachable: { url: ISSUER, what: "ECONNREFUSED" },
  unavailable: { url: ISSUER, status: 503 },
  "bad-answer": { url: ISSUER, what: "HTML in the place of JSON" },
  refused: { error: "server_error", what: "try later" },
  "not-https": { url: "http://auth.example.com/token" },
  "private-address": { url: "https://10.0.0.1/token" },
  "secret-elsewhere": {
    url: "https://b.example.com/token",
    what: "client secret",
    key: "issuer",
    found: "https://b.example.com",
  },
  "company-denied": { what: "policy 7", at: "idp.example.com" },
  "identity-refused": { what: "expired", at: "idp.example.com" },
  "identity-wrong": {
    url: `${ISSUER}/token`,
    what: "its ID token is for another client",
    at: "idp.example.com",
  },
  "no-identity": { url: `${ISSUER}/token`, at: "idp.example.com" },
  "assertion-refused": {
    error: "invalid_grant",
    what: "wrong audience",
    expected: "https://auth.linear.app",
    found: "its audience is https://other.example, and it ended 60 s ago",
  },
  "store-unwritable": { path: "/home/me/.pi/agent/mcp-oauth/linear/a.json", what: "ENOSPC" },
  "system-store": { what: "it is locked" },
  "lock-busy": { path: "/home/me/.pi/agent/mcp-oauth/linear/a.json" },
  "provider-unknown": { what: "radius" },
  "provider-signed-out": { what: "radius" },
  "provider-failed": { what: "radius" },
  "provider-refused": { what: "radius" },
  "provider-needs-pi": { what: "radius" },
  "too-many": { most: 8 },
  "bad-settings": { key: "oauth.privateKey", what: "it is no private key" },
};

const explained = (kind: SignInProblemKind, facts: ProblemFacts, redact = (text: string): string => text) =>
  explainProblem(new SignInProblem(kind, facts), { server: "linear", redact });

describe("explainProblem", () => {
  test("each failure -> one sentence that names the server, and a remedy", () => {
    const sentences = Object.entries(FACTS).map(([kind, facts]) => {
      const error = explained(kind as SignInProblemKind, facts);
      return `${kind} (${error.code}): ${describeError(error)}`;
    });
    expect(sentences.join("\n")).toMatchSnapshot();
    for (const sentence of sentences) {
      expect(sentence).toMatch(/: linear: .+\. .+\.$/);
      expect(sentence).not.toContain("undefined");
    }
  });

  test("tokens.json that has expired -> its path is named", () => {
    const { message } = explained("expired", { path: "/home/me/tokens.json" });
    expect(message).toBe("linear: the tokens in /home/me/tokens.json have expired and cannot be renewed.");
  });

  test("a failure at the identity provider -> its host and its own keys are named, at a sign-in and at a request", () => {
    const facts = { key: "oauth.clientSecret", what: "the sign-in needs it" };
    const says =
      "linear: settings.identityProvider.clientSecret cannot be used: the sign-in needs it (at the identity provider idp.example.com). Correct it in mcp.json.";
    expect(describeError(explained("bad-settings", { ...facts, at: "idp.example.com" }))).toBe(says);
    const url = "https://oauth.company.example/token";
    expect(describeError(explained("unreachable", { url, at: "oauth.company.example" }))).toContain(
      `linear: ${url} could not be reached (at the identity provider oauth.company.example).`,
    );
    const place = { server: "linear", redact: (text: string) => text, at: "idp.example.com" };
    expect(describeError(explainProblem(new SignInProblem("bad-settings", facts), place))).toBe(says);
  });

  test("http that a proxy would get -> how it stays on this machine", () => {
    const facts = { url: "http://127.0.0.1:3000/token", what: "it goes through a proxy" };
    expect(describeError(explained("not-https", facts))).toBe(
      "linear: http://127.0.0.1:3000/token is not https, and a token would travel in the open: it goes through a proxy. Write its host into NO_PROXY, so that it stays on this machine.",
    );
  });

  test("a server that names no scope -> the sentence says so", () => {
    expect(explained("scope-wanted", {}).message).toContain("it does not say which");
  });

  test("the words of a server -> one line, without escapes and secrets, cut", () => {
    const what = `bad\n\u001b[31mtoken sekret-token-1 ${"x".repeat(5_000)}`;
    const { message } = explained("refused", { error: "e", what }, (text) =>
      text.replaceAll("sekret-token-1", "[redacted]"),
    );
    expect(message).toContain("[redacted]");
    for (const unwanted of ["sekret", "\n", "\u001b"]) expect(message).not.toContain(unwanted);
    expect(message.length).toBeLessThan(400);
  });

  test("the data -> server, reason and scope only", () => {
    expect(explained("scope-wanted", { scope: "write", url: `${ISSUER}?key=1` }).data).toEqual({
      server: "linear",
      reason: "scope-wanted",
      scope: "write",
    });
  });
});
