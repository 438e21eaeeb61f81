/** Owns: what is taken of the answer to `server/discover`, whatever its shape. */
import { describe, expect, test } from "vitest";
import {
  EVERY_LIST,
  readDiscovered,
  tooNew,
} from "../../../../../../workers/connection/mcp/modern/server.ts";
import { MODERN_VERSION } from "../../../../../../workers/connection/mcp/wire/wire.ts";

describe("readDiscovered", () => {
  test.each<[string, Record<string, unknown>, unknown]>([
    [
      "all of it",
      { supportedVersions: [MODERN_VERSION], capabilities: { tools: {} }, instructions: "Ask first." },
      { capabilities: { tools: {} }, instructions: "Ask first." },
    ],
    ["nothing", {}, { capabilities: EVERY_LIST, instructions: undefined }],
    ["versions that are no list", { supportedVersions: "2099-01-01" }, { capabilities: EVERY_LIST }],
    ["capabilities that are a list", { capabilities: [] }, { capabilities: EVERY_LIST }],
    ["capabilities that are null", { capabilities: null }, { capabilities: EVERY_LIST }],
    ["instructions that are no text", { instructions: { text: "x" } }, { instructions: undefined }],
  ])("%s -> %j", (_what, result, expected) => {
    expect(readDiscovered("s", result)).toMatchObject(expected as object);
  });

  test("it names only other revisions -> connect_failed, with the revisions", () => {
    expect(() => readDiscovered("s", { supportedVersions: ["2099-01-01"] })).toThrow(
      `s speaks MCP "2099-01-01", and this client up to ${MODERN_VERSION}.`,
    );
  });
});

test("a thousand revisions of any kind -> five are named, each cut", () => {
  const error = tooNew("s", ["v".repeat(100), 7, ...Array.from({ length: 1_000 }, () => "x")]);
  expect(error.message).toBe(
    `s speaks MCP "${"v".repeat(60)}", "number", "x", "x", "x", and this client up to ${MODERN_VERSION}.`,
  );
  expect(error).toMatchObject({ code: "connect_failed", data: { server: "s" } });
});
