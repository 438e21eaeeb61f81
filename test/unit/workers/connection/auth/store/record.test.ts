/** Owns: what counts in the text of a stored sign-in, and that a value of the wrong shape counts as absent. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SignInRecord } from "../../../../../../workers/connection/auth/model/model.ts";
import { createKey } from "../../../../../../workers/connection/auth/requests/dpop.ts";
import { fileNameOf, folderNameOf, placeOf } from "../../../../../../workers/connection/auth/store/file.ts";
import {
  formatRecord,
  hasTokens,
  parseGiven,
  parseRecord,
} from "../../../../../../workers/connection/auth/store/record.ts";
import { signedIn } from "./support.ts";

const FULL: SignInRecord = {
  ...signedIn(),
  id: "0b0f1a4e-4c1b-4a0c-9d3e-6f2a1b7c8d9e",
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

describe("a sign-in that is bound to a key", () => {
  const dpopKey = createKey();
  const BOUND: SignInRecord = { ...FULL, version: 2, token_type: "DPoP", dpopKey };

  test("-> the same record, in a version that older programs do not use", () => {
    expect(parseRecord(formatRecord(BOUND))).toEqual({ value: BOUND });
  });

  test.each<[string, unknown]>([
    ["none", undefined],
    ["a text", "key"],
    ["a public key", { ...dpopKey, d: undefined }],
    ["numbers", { ...dpopKey, d: 7 }],
    ["a point that is not on the curve", { ...dpopKey, y: dpopKey.x }],
    ["a short private key", { ...dpopKey, d: "abc" }],
    ["a line break", { ...dpopKey, d: `${dpopKey.d}\n` }],
    ["1 MB", { ...dpopKey, d: "a".repeat(1_000_000) }],
  ])("its key is %s -> not used: no token may go out without it", (_name, wrong) => {
    expect(parsed({ ...BOUND, dpopKey: wrong })).toBe("it has no key to which its tokens are bound");
  });

  test("further fields of the key -> left out", () => {
    expect(parsed({ ...BOUND, dpopKey: { ...dpopKey, kid: "x", alg: "none", crv: "P-384" } })).toEqual(BOUND);
  });

  test("a key in a record of version 1 -> it does not count", () => {
    expect(parsed({ dpopKey })).toEqual(FULL);
  });
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
    ["version", 3, "its version is unknown"],
    ["version", "1", "its version is unknown"],
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

test.each([
  ["a number", 7],
  ["a line break", "0b0f1a4e-4c1b-4a0c-9d3e-6f2a1b7c8d9\n"],
  ["1 MB", "a".repeat(1_000_000)],
])("an id that is %s -> absent", (_name, id) => {
  expect(parsed({ id })).not.toHaveProperty("id");
});

test("hasTokens -> an access token or a refresh token", () => {
  const { access_token, refresh_token, ...none } = signedIn();
  expect([
    hasTokens({ ...none, access_token: access_token ?? "" }),
    hasTokens({ ...none, refresh_token: refresh_token ?? "" }),
    hasTokens(none),
  ]).toEqual([true, true, false]);
});

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

describe("folderNameOf", () => {
  test.each(["linear", "a", "my.server_2-b", ".hidden", "GitHub", "x".repeat(64), "console", "a..b"])(
    "%s -> the name itself",
    (name) => {
      expect(folderNameOf(name)).toBe(name);
    },
  );

  test.each([
    ["empty", ""],
    ["the folder itself", "."],
    ["the folder above", ".."],
    ["a path", "../../etc"],
    ["a path of Windows", "a\\b"],
    ["a space", "my server"],
    ["letters beyond ASCII", "größe"],
    ["a control character", "a\0b"],
    ["65 characters", "x".repeat(65)],
    ["a dot at the end, which Windows drops", "linear."],
    ["a device of Windows", "NUL"],
    ["a device of Windows with an extension", "com1.mcp"],
    ["a folder that the adapter imports and removes", "sha256-abc"],
    ["the same in capitals", "SHA256-abc"],
    ["a folder of a hashed name", `h-${"0".repeat(32)}`],
  ])("%s -> a hash", (_name, name) => {
    expect(folderNameOf(name)).toBe(`h-${sha256(name).slice(0, 32)}`);
  });
});

describe("fileNameOf", () => {
  test("a name without capitals -> 16 digits of the url's SHA-256", () => {
    expect(fileNameOf("linear", "https://a/mcp")).toBe(`${sha256("https://a/mcp").slice(0, 16)}.json`);
  });

  test("names that differ in case only -> different files, where case does not count too", () => {
    const files = ["linear", "Linear", "LINEAR"].map((name) => fileNameOf(name, "https://a/mcp"));
    expect(new Set(files).size).toBe(3);
  });

  test("two urls of one server -> different files", () => {
    expect(fileNameOf("linear", "https://a/mcp")).not.toBe(fileNameOf("linear", "https://b/mcp"));
  });
});

test("placeOf -> root, folder, file and tokens.json", () => {
  const place = placeOf({ agentDir: "/agent", server: "linear", url: "https://a/mcp" });
  const folder = join("/agent", "mcp-oauth", "linear");
  expect(place).toEqual({
    root: join("/agent", "mcp-oauth"),
    folder,
    file: join(folder, fileNameOf("linear", "https://a/mcp")),
    given: join(folder, "tokens.json"),
  });
});

const MODIFIED = 1_700_000_000_000;
const URL_OF_SERVER = "https://a.example/mcp";
const parse = (content: unknown): ReturnType<typeof parseGiven> =>
  parseGiven(typeof content === "string" ? content : JSON.stringify(content), {
    modifiedMs: MODIFIED,
    url: URL_OF_SERVER,
  });
const TOKEN = { access_token: "abc", token_type: "Bearer" };

test("all keys -> tokens with the end of their life", () => {
  const content = { ...TOKEN, refresh_token: "r", expires_in: 60, expiresAt: 1_800_000_000_000 };
  expect(parse(content)).toEqual({
    value: { ...TOKEN, refresh_token: "r", expiresAt: 1_800_000_000_000 },
  });
});

test("a byte-order mark, unknown keys -> the tokens", () => {
  expect(parse(`\uFEFF${JSON.stringify({ ...TOKEN, id_token: "x", scope: "y" })}`)).toEqual({ value: TOKEN });
});

describe("the end of life", () => {
  test.each<[string, Record<string, unknown>, number | undefined]>([
    ["none", {}, undefined],
    ["expiresAt in milliseconds", { expiresAt: 1_800_000_000_000 }, 1_800_000_000_000],
    ["expiresAt in seconds", { expiresAt: 1_800_000_000 }, 1_800_000_000_000],
    ["expires_at in seconds", { expires_at: 1_800_000_000 }, 1_800_000_000_000],
    ["expires_at in milliseconds", { expires_at: 1_800_000_000_000 }, 1_800_000_000_000],
    ["expires_at as a text", { expires_at: "1800000000" }, 1_800_000_000_000],
    ["expires_in, counted from the file's time", { expires_in: 3_600 }, MODIFIED + 3_600_000],
    ["expires_in as a text", { expires_in: "3600" }, MODIFIED + 3_600_000],
    ["a negative expires_in", { expires_in: -5 }, MODIFIED],
    ["both -> the absolute one", { expires_in: 60, expires_at: 1_800_000_000 }, 1_800_000_000_000],
    ["null", { expiresAt: null, expires_at: null, expires_in: null }, undefined],
    ["words", { expiresAt: "tomorrow", expires_in: "soon" }, undefined],
    ["beyond all times", { expires_in: 1e300 }, undefined],
  ])("%s", (_name, over, expiresAt) => {
    expect(parse({ ...TOKEN, ...over })).toEqual({
      value: expiresAt === undefined ? TOKEN : { ...TOKEN, expiresAt },
    });
  });
});

describe("what cannot be used -> why, without anything of the content", () => {
  test.each<[string, unknown, string]>([
    ["no JSON", "access_token=abc", "it is not a JSON object"],
    ["a list", [TOKEN], "it is not a JSON object"],
    ["no token", { token_type: "Bearer" }, "it has no access_token that a header can hold"],
    ["a line break in the token", { access_token: "a\nb" }, "it has no access_token that a header can hold"],
    ["a space in the token", { access_token: "Bearer abc" }, "it has no access_token that a header can hold"],
    [
      "a token of more than 16 KiB",
      { access_token: "x".repeat(16_385) },
      "it has no access_token that a header can hold",
    ],
    ["another url", { ...TOKEN, url: "https://b.example/mcp" }, "its url is not that of the server"],
    [
      "a token that is bound to a key",
      { ...TOKEN, token_type: "dpop" },
      "its token is bound to a key, which the file does not hold",
    ],
  ])("%s", (_name, content, what) => {
    expect(parse(content)).toEqual({ what });
  });

  test("the server's own url -> the tokens", () => {
    expect(parse({ ...TOKEN, url: URL_OF_SERVER })).toEqual({ value: TOKEN });
  });

  test("no token_type, a refresh token that is none -> Bearer, without a refresh token", () => {
    expect(parse({ access_token: "abc", refresh_token: 5 })).toEqual({ value: TOKEN });
  });
});
