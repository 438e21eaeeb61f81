/** Owns: `tokens.json` as people and other programs write it. */
import { describe, expect, test } from "vitest";
import { parseGiven } from "../../../../../../workers/connection/auth/store/record.ts";

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
