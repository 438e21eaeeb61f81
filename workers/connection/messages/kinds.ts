/**
 * Owns: which kind of JSON-RPC message a message is, and reading messages from text that a server sent. The check is
 * loose: the SDK's client checks the parts that it uses.
 */
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "../mcp/wire/wire.ts";
import { readIncoming, refusalOf } from "./incoming.ts";

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

/**
 * One message or a batch (MCP 2025-03-26). Undefined if the text is not JSON or holds anything else. In place of an
 * answer that is too large it returns the error that the request gets. Throws `TooLarge` for any other message that
 * is too large.
 */
export function parseMessages(text: string | Buffer): JSONRPCMessage[] | undefined {
  const incoming = readIncoming(text, { batches: true });
  if (incoming.kind === "messages") return incoming.messages;
  if (incoming.kind !== "refused") return undefined;
  if (incoming.id === undefined) throw incoming.error;
  return [refusalOf(incoming.id, incoming.error)];
}
