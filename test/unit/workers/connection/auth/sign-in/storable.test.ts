/** Owns: that whatever an authorization server may bring into a sign-in can also be stored and read again. */
import { expect, test } from "vitest";
import { readServer } from "../../../../../../workers/connection/auth/discovery/metadata.ts";
import { clientFor } from "../../../../../../workers/connection/auth/grants/client.ts";
import { readTokens } from "../../../../../../workers/connection/auth/grants/token-requests.ts";
import { recordOf } from "../../../../../../workers/connection/auth/sign-in/prepare.ts";
import { formatRecord, parseRecord } from "../../../../../../workers/connection/auth/store/record.ts";
import { authServer, contextOf, discoveredOf, publicClient } from "../grants/support.ts";
import { pendingWith } from "./support.ts";

const TARGET = { server: "docs", url: new URL("https://docs.test/mcp") };
const TOKENS = { access_token: "a", token_type: "Bearer" };
const WELL = {
  issuer: "https://as.test",
  authorization_endpoint: "https://as.test/authorize",
  token_endpoint: "https://as.test/token",
};

/** Fails if a field of the record would be lost: the store refuses to write such a record. */
function expectStored(record: ReturnType<typeof recordOf>): void {
  expect(parseRecord(formatRecord(record))).toEqual({ value: record });
}

test.each<[string, object]>([
  ["that never ends, as Java writes it", { client_secret_expires_at: Number("9223372036854775807") }],
  ["that ends at an infinite time", { client_secret_expires_at: 1e308 }],
  ["of 4,000 characters that JSON escapes", { client_secret: '"'.repeat(4_000) }],
  ["of a client whose id has 2,000 spaces", { client_id: " ".repeat(2_000) }],
])("a secret %s -> the client is stored", async (_condition, more) => {
  const answer = { client_id: "new", client_secret: "s", client_secret_expires_at: 0, ...more };
  const server = await authServer(() => ({ status: 201, body: answer }));
  const redirectUri = "http://127.0.0.1:1/callback";
  const discovered = discoveredOf(server.metadata);
  const wanted = { discovered, redirectUri, scope: undefined, stored: undefined, reuse: true };
  const client = await clientFor(wanted, contextOf());
  expectStored(recordOf(TARGET, pendingWith({ discovered, client }), TOKENS, 7));
});

test.each<[string, object]>([
  ["a refresh token with spaces", { refresh_token: "a b c" }],
  ["a life of 1e308 s", { expires_in: 1e308 }],
  ["a life of a moment", { expires_in: 1e-300 }],
  ["a life of minus 1 s", { expires_in: -1 }],
  ["a life that is no number", { expires_in: "NaN" }],
  ["10,000 scopes", { scope: Array.from({ length: 10_000 }, (_, i) => `scope-${i}`).join(" ") }],
  ["scopes with quotes and control characters", { scope: 'a" b\u0007 c' }],
])("%s -> the tokens are stored", async (_condition, more) => {
  const text = JSON.stringify({ access_token: "a", token_type: "bearer", ...more });
  const tokens = await readTokens(WELL, { client_id: "c" }, text);
  const pending = pendingWith({ client: publicClient, discovered: discoveredOf(WELL) });
  expectStored(recordOf(TARGET, pending, tokens, 7));
});

test.each(["https:as.test/token", "https:\\\\as.test\\token", "https:/as.test/token"])(
  "%s as the token endpoint -> refused before the user signs in",
  (token_endpoint) => {
    const plan = { grantType: "authorization_code" } as const;
    const context = { from: new URL(WELL.issuer), server: TARGET.url, plan, onNote: () => undefined };
    expect(() => readServer({ ...WELL, token_endpoint }, context)).toThrow(/bad-answer/);
  },
);
