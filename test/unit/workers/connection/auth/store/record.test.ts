/** Owns: what counts in the text of a stored sign-in, and that a value of the wrong shape counts as absent. */
import { describe, expect, test } from "vitest";
import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import {
  formatRecord,
  hasTokens,
  parseRecord,
} from "../../../../../../workers/connection/auth/store/record.ts";
import { signedIn } from "./support.ts";

const FULL: SignInRecord = {
  ...signedIn(),
  acceptedIssuer: "https://auth.atlassian.example",
  resource: "https://mcp.linear.example/mcp",
  revocationEndpoint: "https://auth.linear.example/revoke",
  client: {
    id: "client",
    secret: "secret of the client",
    method: "client_secret_post",
    kind: "dynamic",
    redirectUris: ["http://127.0.0.1:4711/callback", "com.example.app:/callback"],
    secretExpiresAt: 1_900_000_000_000,
    registeredAt: 1_700_000_000_000,
  },
  requestedScope: "read write",
  scope: "read",
  obtainedAt: 1_700_000_000_000,
  refreshing: { at: 1_700_000_000_000, pid: 42 },
};

const parsed = (over: Record<string, unknown>): unknown => {
  const read = parseRecord(JSON.stringify({ ...FULL, ...over }));
  return "value" in read ? read.value : read.what;
};

test("a whole record -> the same record", () => {
  expect(parseRecord(formatRecord(FULL))).toEqual({ value: FULL });
});

test("a byte-order mark -> the same record", () => {
  expect(parseRecord(`\uFEFF${formatRecord(FULL)}`)).toEqual({ value: FULL });
});

test("unknown keys -> left out, __proto__ too", () => {
  const text = formatRecord(FULL).replace("{", '{ "__proto__": { "a": 1 }, "id_token": "x",');
  expect(parseRecord(text)).toEqual({ value: FULL });
});

describe("what cannot be used", () => {
  test.each([
    ["no text", ""],
    ["half a text", formatRecord(FULL).slice(0, 200)],
    ["a list", "[]"],
    ["null", "null"],
  ])("%s -> not a JSON object, and nothing of the text is told", (_name, text) => {
    expect(parseRecord(text)).toEqual({ what: "it is not a JSON object" });
  });

  test.each([
    ["version", 2, "its version is unknown"],
    ["version", undefined, "its version is unknown"],
    ["server", 5, "it does not say which server it is for"],
    ["url", undefined, "it does not say which server it is for"],
    ["issuer", undefined, "it does not name its authorization server"],
    ["issuer", "file:///etc/passwd", "it does not name its authorization server"],
    ["tokenEndpoint", "javascript:alert(1)", "it does not name its authorization server"],
    ["client", undefined, "it does not name its client"],
    ["client", { id: "" }, "it does not name its client"],
    ["client", [], "it does not name its client"],
  ])("%s is %j -> %s", (key, value, what) => {
    expect(parsed({ [key]: value })).toBe(what);
  });
});

describe("a value that cannot be used -> absent, the rest stays", () => {
  test.each<[keyof SignInRecord, unknown]>([
    ["access_token", null],
    ["access_token", "two words"],
    ["access_token", "line\nbreak"],
    ["access_token", "tökén"],
    ["access_token", "x".repeat(16 * 1024 + 1)],
    ["refresh_token", ""],
    ["refresh_token", 12],
    ["token_type", {}],
    ["expiresAt", "1800000000000"],
    ["expiresAt", -1],
    ["expiresAt", 1e300],
    ["scope", ["read"]],
    ["scope", "x".repeat(8 * 1024 + 1)],
    ["requestedScope", "a\u001b[2Jb"],
    ["obtainedAt", null],
    ["resource", false],
    ["revocationEndpoint", "/revoke"],
    ["acceptedIssuer", "not a url"],
    ["refreshing", { at: 1 }],
    ["refreshing", "yes"],
  ])("%s: %j", (key, value) => {
    const { [key]: _left, ...rest } = FULL;
    expect(parsed({ [key]: value })).toEqual(rest);
  });

  test("a token of 16 KiB -> counts", () => {
    expect(parsed({ access_token: "x".repeat(16 * 1024) })).toHaveProperty("access_token");
  });
});

describe("the client", () => {
  test.each([
    ["without method and kind, without secret", { id: "a" }, { id: "a", method: "none", kind: "dynamic" }],
    [
      "without method, with secret",
      { id: "a", secret: "s" },
      { id: "a", secret: "s", method: "client_secret_basic", kind: "dynamic" },
    ],
    [
      "with unknown method and kind",
      { id: "a", method: "telepathy", kind: "friend" },
      { id: "a", method: "none", kind: "dynamic" },
    ],
    [
      "with redirect URIs of which some are none",
      { id: "a", method: "none", kind: "configured", redirectUris: ["http://127.0.0.1/", 5, ""] },
      { id: "a", method: "none", kind: "configured", redirectUris: ["http://127.0.0.1/"] },
    ],
    [
      "with more than 20 redirect URIs",
      {
        id: "a",
        method: "none",
        kind: "dynamic",
        redirectUris: Array.from({ length: 30 }, (_, i) => `a:${i}`),
      },
      {
        id: "a",
        method: "none",
        kind: "dynamic",
        redirectUris: Array.from({ length: 20 }, (_, i) => `a:${i}`),
      },
    ],
  ])("%s", (_name, client, expected) => {
    expect(parsed({ client })).toEqual({ ...FULL, client: expected });
  });
});

test("hasTokens -> an access token or a refresh token", () => {
  const { access_token, refresh_token, ...none } = signedIn();
  expect([
    hasTokens({ ...none, access_token: access_token ?? "" }),
    hasTokens({ ...none, refresh_token: refresh_token ?? "" }),
    hasTokens(none),
  ]).toEqual([true, true, false]);
});
