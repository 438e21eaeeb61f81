/** What a call is told that got no result: who, why, and what to do. Pure. */
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { boundJson } from "../../../src/shared/text/failure.ts";
import { boundText } from "../secrets/secrets.ts";
import type { CallRequest, ConnectionParts } from "./mcp.ts";
import { isTimeout, refusedAnswer } from "./sdk-errors.ts";

interface FailedCall {
  parts: ConnectionParts;
  call: Omit<CallRequest, "args">;
  error: unknown;
  /** The error is the server's answer. */
  answered: boolean;
}

export function callFailure(server: string, { parts, call, error, answered }: FailedCall): ThreadsError {
  if (call.signal.aborted) return new ThreadsError("cancelled", `${server}/${call.tool} was cancelled.`);
  const refused = refusedAnswer(error);
  if (refused) {
    const { what, remedy, data } = refused.excess;
    const text = `${server}/${call.tool} got no answer: ${server} sent ${what}.`;
    return new ThreadsError("message_too_large", text, { remedy, data: { server, ...data } });
  }
  // A transport that knows why says so itself.
  if (error instanceof ThreadsError) return error;
  const failure = parts.failure?.();
  if (failure) return failure;
  if (isTimeout(error)) {
    return new ThreadsError(
      "call_timeout",
      `${server}/${call.tool} gave no answer within ${call.timeoutMs / 1_000} s.`,
      {
        remedy:
          "It may still be running there. Set timeout (seconds) for the server in mcp.json if it needs longer.",
        data: { server, timeoutMs: call.timeoutMs },
      },
    );
  }
  if (error instanceof McpError && answered) {
    const words = error.message.replace(/^MCP error -?\d+: /, "");
    const text = boundText(words, LIMITS.errorTextChars, parts.redact);
    const data = error.data === undefined ? {} : { rpcData: boundJson(error.data, { redact: parts.redact }) };
    return new ThreadsError("call_rejected", `${server} rejected ${call.tool}: ${text}`, {
      data: { server, rpcCode: error.code, ...data },
    });
  }
  return new ThreadsError(
    "server_died",
    `${server}/${call.tool} got no answer: ${diedReason(parts, error)}`,
    {
      remedy: "The call may have run. The next call connects again.",
      data: { server },
    },
  );
}

const diedReason = (parts: ConnectionParts, error: unknown): string =>
  error instanceof McpError ? parts.whyClosed() : `${messageOf(error)}.`;
