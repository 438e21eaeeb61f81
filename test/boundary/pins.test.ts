/** What others see, as literals: change one on purpose, never by accident. */
import { expect, test } from "vitest";
import { CONNECTION_METHODS } from "../../src/protocol/api.ts";
import { ERROR_CODES } from "../../src/protocol/errors.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import { WEIGHTED } from "../../src/search/weighted.ts";

test("error codes", () => {
  expect(ERROR_CODES).toEqual([
    "cancelled",
    "deadline",
    "runtime_exited",
    "runtime_stopped",
    "internal",
    "bad_config",
    "unknown_server",
    "unknown_tool",
    "server_disabled",
    "spawn_failed",
    "connect_failed",
    "connect_timeout",
    "needs_auth",
    "server_died",
    "call_timeout",
    "call_rejected",
    "message_too_large",
  ]);
});

test("requests of main to the connection worker", () => {
  expect(CONNECTION_METHODS).toEqual([
    "startSession",
    "settleTools",
    "callTool",
    "status",
    "log",
    "shutdown",
  ]);
});

test("limits that users and models meet", () => {
  expect(LIMITS).toMatchObject({
    toolNameChars: 64,
    searchResults: 5,
    startupTimeoutMs: 30_000,
    requestTimeoutMs: 60_000,
    messageBytes: 67_108_864,
    resultBytes: 51_200,
    resultLines: 2_000,
    shutdownMs: 1_000,
  });
});

test("search weights", () => {
  expect(WEIGHTED).toEqual({ part: 10, partSubstring: 5, descriptionWord: 4, fullNameOnly: 3 });
});
