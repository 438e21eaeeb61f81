/** Owns: the failure of a call or of a list -> the error that says who, why and what to do, naming the server once. */
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { ThreadsError } from "../../../../../src/shared/protocol/errors.ts";
import type { ConnectionParts } from "../../../../../workers/connection/mcp/connection.ts";
import { begunFailure, callFailure, listFailure } from "../../../../../workers/connection/mcp/failures.ts";
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

test.each<[string, unknown, object]>([
  [
    "an error of the server",
    new McpError(-32602, "no such task", { id: 1 }),
    {
      code: "call_rejected",
      message: "s/work failed after it had begun: no such task",
      remedy: "The call may have run: what the server did until then has happened.",
      data: { server: "s", rpcCode: -32602, rpcData: { id: 1 }, begun: true },
    },
  ],
  [
    "the SDK's timeout",
    new McpError(-32001, "Request timed out", { timeout: 1_000 }),
    { code: "call_timeout", message: "s/work did not answer within 1 s." },
  ],
  [
    "a look at its task that nobody answers",
    new ThreadsError("connect_failed", "s: tasks/get got no answer: it was refused.", {
      remedy: "Check the url.",
      data: { server: "s" },
    }),
    {
      code: "server_died",
      message: "s: tasks/get got no answer: it was refused.",
      remedy: "The server has begun with the call, which may still run there. The next call connects again.",
      data: { server: "s", begun: true },
    },
  ],
  ["whoever gave it up", new ThreadsError("cancelled", "s/work was cancelled."), { code: "cancelled" }],
])(
  "a call that the server has begun is ended by %s -> told as one that may have run",
  (_by, error, expected) => {
    const failed = { parts: parts(""), call: call(), error: begunFailure(error), answered: true };
    expect(callFailure("s", failed)).toMatchObject(expected);
  },
);

test("a connection that ends during a call that the server has begun -> as for any call", () => {
  const failed = { parts: parts("s exited."), call: call(), error: begunFailure(CLOSED), answered: false };
  expect(callFailure("s", failed)).toMatchObject({
    code: "server_died",
    message: "s/work got no answer: it exited.",
  });
});
