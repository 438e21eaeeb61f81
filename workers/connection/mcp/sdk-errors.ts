/** What an error means that the SDK's client rejects a request with. Pure. */
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { TooLarge } from "../messages/messages.ts";

/**
 * The SDK's own timeout. A server may answer an error of the same code, -32001, but not with the limit that
 * the SDK notes in `data`.
 */
export const isTimeout = (error: unknown): boolean =>
  error instanceof McpError &&
  error.code === ErrorCode.RequestTimeout &&
  typeof error.data === "object" &&
  error.data !== null &&
  ("timeout" in error.data || "maxTotalTimeout" in error.data);

/** Whether a connection has ended, as far as a failed request tells. */
export const isClosed = (error: unknown): boolean =>
  error instanceof McpError && error.code === ErrorCode.ConnectionClosed;

/** The transport refused the answer because of its size; a server cannot send such an error. */
export function refusedAnswer(error: unknown): TooLarge | undefined {
  if (error instanceof TooLarge) return error;
  return error instanceof McpError && error.data instanceof TooLarge ? error.data : undefined;
}
