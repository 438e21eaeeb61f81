/** JSON-RPC messages out of text that a server sent, checked loosely: the SDK's client checks what it uses. */
import type { JSONRPCMessage, JSONRPCRequest } from "../mcp/wire/wire.ts";
import { readIncoming, refusalOf } from "./incoming.ts";

export const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest =>
  "method" in message && "id" in message && message.id !== undefined;

/**
 * One message or a batch (MCP 2025-03-26). Undefined where the text is not JSON or holds anything else. For an
 * answer that is too large it gives the error that its request gets instead; throws `TooLarge` for anything else.
 */
export function parseMessages(text: string | Buffer): JSONRPCMessage[] | undefined {
  const incoming = readIncoming(text, { batches: true });
  if (incoming.kind === "messages") return incoming.messages;
  if (incoming.kind !== "refused") return undefined;
  if (incoming.id === undefined) throw incoming.error;
  return [refusalOf(incoming.id, incoming.error)];
}
