/** Tells what the errors mean with which the SDK's client rejects a request. Pure. */
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { LongErrorData } from "../messages/prune.ts";
import { TooLarge } from "../messages/too-large.ts";

/**
 * Whether the SDK's own timeout ended the request. A server may answer an error of the same code, -32001, but without the
 * limit that the SDK puts into `data`.
 */
export const isTimeout = (error: unknown): boolean =>
  error instanceof McpError &&
  error.code === ErrorCode.RequestTimeout &&
  typeof error.data === "object" &&
  error.data !== null &&
  ("timeout" in error.data || "maxTotalTimeout" in error.data);

/** Whether the request failed because the connection ended. A server may answer an error of the same code. */
export const isClosed = (error: unknown): boolean =>
  error instanceof McpError && error.code === ErrorCode.ConnectionClosed;

/** The reason if the transport refused the answer for its size. A server cannot send such an error. */
export function refusedAnswer(error: unknown): TooLarge | undefined {
  if (error instanceof TooLarge) return error;
  return error instanceof McpError && error.data instanceof TooLarge ? error.data : undefined;
}

/** The `data` of an error as the server sent it, and the length of its message if more of that was sent than arrives. */
export const sentData = ({
  data,
}: {
  data?: unknown;
}): { data: unknown; messageChars: number | undefined } =>
  data instanceof LongErrorData ? data : { data, messageChars: undefined };
