/** What a server says of a tool in `_meta`: each sign has one meaning for whatever stands there, and nothing else is kept. */
import { describe, expect, test } from "vitest";
import { isAppOnly, isPage, signsOf } from "../../../../workers/shared/signs.ts";

const HIDDEN = { ui: { visibility: ["app"] } };
const visibility = (value: unknown): unknown => signsOf({ ui: { visibility: value } });

describe("visibility", () => {
  test.each<[string, unknown]>([
    ["none", undefined],
    ["null", null],
    ["both", ["model", "app"]],
    ["the model alone", ["model"]],
    ["the model and a word of a later revision", ["later", "model"]],
  ])("%s -> the model may have the tool", (_case, value) => {
    expect(visibility(value)).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ["the app alone", ["app"]],
    ["nobody", []],
    ["a text", "model"],
    ["true", true],
    ["an object", { model: true }],
    ["numbers", [1, 2]],
    ["other letters", ["Model", " model"]],
    ["a list within the list", [["model"]]],
    ["the model behind a hundred thousand others", [...Array(100_000).fill("app"), "model"]],
  ])("%s -> hidden", (_case, value) => {
    expect(visibility(value)).toEqual(HIDDEN);
  });

  test.each<[string, unknown]>([
    ["no object", "ui"],
    ["a list", []],
    ["a flat key, which the extension never had", { "ui/visibility": ["app"] }],
    ["ui that is no object", { ui: ["app"] }],
    ["ui with an address alone", { ui: { resourceUri: "ui://a" } }],
  ])("_meta is %s -> no sign", (_case, meta) => {
    expect(signsOf(meta)).toBeUndefined();
  });

  test("what pi-mcp-adapter keeps of a tool counts too, and either hides", () => {
    expect(signsOf(undefined, ["app"])).toEqual(HIDDEN);
    expect(signsOf(undefined, [])).toEqual(HIDDEN);
    expect(signsOf(undefined, ["model"])).toBeUndefined();
    expect(signsOf(HIDDEN, ["model"])).toEqual(HIDDEN);
  });
});

test.each(["anthropic/requiresUserInteraction", "anthropic/alwaysLoad"])("%s: only true counts", (key) => {
  expect(signsOf({ [key]: true })).toEqual({ [key]: true });
  for (const value of ["true", 1, {}, [true], null, false]) expect(signsOf({ [key]: value })).toBeUndefined();
});

test.each<[unknown, number | undefined]>([
  [200_000, 200_000],
  [500_000, 500_000],
  [500_001, 500_000],
  [Number.MAX_SAFE_INTEGER, 500_000],
  [5, 1_000],
  [0, undefined],
  [-1, undefined],
  [1.5, undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
  [1e308, undefined],
  ["200000", undefined],
  [[200_000], undefined],
  [null, undefined],
])("anthropic/maxResultSizeChars %j -> %s bytes", (value, bytes) => {
  expect(signsOf({ "anthropic/maxResultSizeChars": value })?.["anthropic/maxResultSizeChars"]).toBe(bytes);
});

test("kept and read again -> the same; nothing else is kept", () => {
  const meta = {
    ui: { visibility: ["app"], resourceUri: "ui://x", secret: "s" },
    "anthropic/requiresUserInteraction": true,
    "anthropic/alwaysLoad": true,
    "anthropic/maxResultSizeChars": 70_000,
    "anthropic/searchHint": "x".repeat(100_000),
  };
  const signs = signsOf(meta);
  expect(signs).toEqual({
    ...HIDDEN,
    "anthropic/requiresUserInteraction": true,
    "anthropic/alwaysLoad": true,
    "anthropic/maxResultSizeChars": 70_000,
  });
  expect(signsOf(JSON.parse(JSON.stringify(signs)))).toEqual(signs);
  expect(isAppOnly({ _meta: signs })).toBe(true);
});

test.each([
  ["ui://a", true],
  ["UI://a", true],
  [" \tui:/a", true],
  ["ui:a", true],
  ["%20UI%3A//a", true],
  ["%75i://a", true],
  ["\u0000ui://a", true],
  ["%", false],
  ["ui://{page}", true],
  ["guide://a", false],
  ["x://ui://a", false],
  ["{scheme}://a", false],
])("isPage(%j) -> %s", (uri, is) => {
  expect(isPage(uri)).toBe(is);
});
