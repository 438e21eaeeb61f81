/** Owns: the failure of a call or of a list -> the error that says who, why and what to do, naming the server once. */
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import type { ConnectionParts } from "../../../../../workers/connection/mcp/connection.ts";
import { callFailure, listFailure } from "../../../../../workers/connection/mcp/failures.ts";
import { definitionOf } from "../servers/support.ts";

const parts = (whyClosed: string): ConnectionParts => ({
  onNote: () => undefined,
  definition: definitionOf("s"),
  redact: (text) => text,
  transport: "stdio",
  pid: 1,
  close: async () => undefined,
  whyClosed: () => whyClosed,
});
const CLOSED = new McpError(-32000, "Connection closed");
const call = () => ({
  tool: "work",
  timeoutMs: 1_000,
  signal: new AbortController().signal,
  onProgress: () => undefined,
});

test.each([
  ["s exited with code 7.", CLOSED, "s/work got no answer: it exited with code 7."],
  ["s: the pipe broke.", CLOSED, "s/work got no answer: the pipe broke."],
  ["The network is down.", CLOSED, "s/work got no answer: The network is down."],
  ["", new Error("s said nothing"), "s/work got no answer: it said nothing."],
])("a call that was open when %j -> its reason, the server named once", (why, error, message) => {
  const failure = callFailure("s", { parts: parts(why), call: call(), error, answered: false });
  expect(failure).toMatchObject({
    code: "server_died",
    message,
    remedy: "The call may have run. The next call connects again.",
  });
});

test("a list that was open when the connection ended -> the same", () => {
  const failed = { error: CLOSED, timedOut: false, closed: true };
  expect(listFailure(parts("s exited with code 7."), failed)).toMatchObject({
    code: "connect_failed",
    message: "s did not list its tools: it exited with code 7.",
  });
});
