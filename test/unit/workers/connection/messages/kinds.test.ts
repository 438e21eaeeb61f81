/** Owns: which kind of JSON-RPC message a message is. */
import { expect, test } from "vitest";
import type { JSONRPCMessage, RequestId } from "../../../../../workers/connection/mcp/wire/wire.ts";
import {
  cancelledRequest,
  isAnswer,
  isRequest,
} from "../../../../../workers/connection/messages/incoming.ts";

type Kind = "request" | "answer" | "other";

test.each<[string, object, Kind]>([
  ["a request", { id: 1, method: "ping" }, "request"],
  ["a request with the id 0", { id: 0, method: "ping" }, "request"],
  ["a result", { id: 1, result: {} }, "answer"],
  ["an error", { id: 1, error: { code: 1, message: "no" } }, "answer"],
  ["an error without an id", { error: { code: 1, message: "no" } }, "answer"],
  ["a notification", { method: "notifications/progress" }, "other"],
  ["a notification with an undefined id", { id: undefined, method: "x" }, "other"],
  ["nothing but its version", {}, "other"],
])("%s -> %3$s", (_name, message, kind) => {
  const whole = { jsonrpc: "2.0", ...message } as JSONRPCMessage;
  expect([isRequest(whole), isAnswer(whole)]).toEqual([kind === "request", kind === "answer"]);
});

test.each<[string, object, RequestId | undefined]>([
  ["a cancelled request", { method: "notifications/cancelled", params: { requestId: 7 } }, 7],
  ["the id 0", { method: "notifications/cancelled", params: { requestId: 0 } }, 0],
  ["an id of text", { method: "notifications/cancelled", params: { requestId: "a" } }, "a"],
  ["no id", { method: "notifications/cancelled", params: {} }, undefined],
  ["no params", { method: "notifications/cancelled" }, undefined],
  ["params null", { method: "notifications/cancelled", params: null }, undefined],
  ["another notification", { method: "notifications/progress", params: { requestId: 7 } }, undefined],
  ["an answer", { id: 7, result: { requestId: 7 } }, undefined],
])("cancelledRequest: %s -> %3$s", (_name, message, id) => {
  expect(cancelledRequest({ jsonrpc: "2.0", ...message } as JSONRPCMessage)).toBe(id);
});
