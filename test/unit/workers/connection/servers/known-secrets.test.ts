/** Owns: which secrets of a server a text loses while they come and go. */
import { expect, test } from "vitest";
import { createKnownSecrets } from "../../../../../workers/connection/servers/known-secrets.ts";

test("secrets of the definition and of the sign-in -> a text loses both", () => {
  const secrets = createKnownSecrets();
  secrets.setDefined({ values: ["header-value-1"], named: [] });
  secrets.add("access-token-1");
  expect(secrets.redact("header-value-1 and access-token-1")).toBe("[redacted] and [redacted]");
});

test("a connect that resolves the definition anew -> tokens stay secret, old values do not", () => {
  const secrets = createKnownSecrets();
  secrets.setDefined({ values: ["header-value-1"], named: [] });
  secrets.add("access-token-1");
  secrets.setDefined({ values: ["header-value-2"], named: [] });
  expect(secrets.redact("header-value-1 header-value-2 access-token-1")).toBe(
    "header-value-1 [redacted] [redacted]",
  );
});

test("a token that is renewed 100 times -> the newest 40 are looked for", () => {
  const secrets = createKnownSecrets();
  for (let i = 1; i <= 100; i++) secrets.add(`access-token-${i}`);
  expect(secrets.redact("access-token-60")).toBe("access-token-60");
  expect(secrets.redact("access-token-61 access-token-100")).toBe("[redacted] [redacted]");
});

test("a client secret that is named at each of 50 renewals -> it is never forgotten", () => {
  const secrets = createKnownSecrets();
  for (let i = 1; i <= 50; i++) {
    secrets.add("client-secret-1");
    secrets.add(`access-token-${i}`);
    expect(secrets.redact("client-secret-1")).toBe("[redacted]");
  }
});

test("the redactor that was handed out before a token came -> it knows the token", () => {
  const { redact, add } = createKnownSecrets();
  add("access-token-1");
  expect(redact("access-token-1")).toBe("[redacted]");
});

test("a refresh token that never rotates, and 50 access tokens -> it is secret at every moment", () => {
  const { redact, add } = createKnownSecrets();
  for (let i = 1; i <= 50; i++) {
    add("refresh-token-for-ever");
    add(`access-token-${i}`);
    expect(redact("refresh-token-for-ever")).toBe("[redacted]");
  }
});
