/** Owns: which kind of JSON-RPC message a message is. The check is loose: the SDK's client checks the parts that it uses. */
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "../mcp/wire/wire.ts";

export const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest =>
  "method" in message && "id" in message && message.id !== undefined;

/** A result or an error, which answers a request. */
export type JSONRPCAnswer = Exclude<JSONRPCMessage, { method: string }>;

export const isAnswer = (message: JSONRPCMessage): message is JSONRPCAnswer =>
  "result" in message || "error" in message;

/** Id of the request that a `notifications/cancelled` takes back; undefined for any other message. */
export function cancelledRequest(message: JSONRPCMessage): RequestId | undefined {
  if (!("method" in message) || message.method !== "notifications/cancelled") return undefined;
  return (message.params as { requestId?: RequestId } | undefined)?.requestId;
}
