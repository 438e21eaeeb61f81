/** Owns: which errors of a request mean that there was no answer, and what a task's own error becomes. */
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import { isUnanswered, taskFailure } from "../../../../../workers/connection/mcp/failures.ts";

const PARTY = { server: "s", subject: "s/t" };

describe("isUnanswered", () => {
  test.each<[string, unknown, boolean]>([
    ["the process ended", new ThreadsError("server_died", "s ended."), true],
    ["no connection", new ThreadsError("connect_failed", "s is away."), true],
    ["another error of ours", new ThreadsError("call_rejected", "no"), false],
    ["the SDK's own timeout", new McpError(ErrorCode.RequestTimeout, "late", { timeout: 5 }), true],
    ["the server's error of the same code", new McpError(ErrorCode.RequestTimeout, "late"), false],
    ["a refusal", new McpError(ErrorCode.InvalidParams, "no"), false],
    ["the connection was closed", new McpError(ErrorCode.ConnectionClosed, "closed"), false],
    ["a broken network", new TypeError("fetch failed"), true],
  ])("%s -> %#", (_what, error, expected) => {
    expect(isUnanswered(error)).toBe(expected);
  });
});

describe("taskFailure", () => {
  test.each<[string, unknown, string]>([
    ["a JSON-RPC error", { code: -32602, message: "wrong", data: 1 }, "MCP error -32602: wrong"],
    ["an error without a code", { message: "wrong" }, "MCP error 0: wrong"],
    ["a code that is no number", { code: "x", message: "wrong" }, "MCP error 0: wrong"],
    ["nothing", undefined, "s/t failed as a task without a reason."],
    ["a text", "wrong", "s/t failed as a task without a reason."],
    ["a message that is no text", { code: 1, message: {} }, "s/t failed as a task without a reason."],
  ])("%s -> %s", (_what, error, message) => {
    expect(taskFailure(error, PARTY).message).toBe(message);
  });
});
