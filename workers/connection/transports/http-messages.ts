/** JSON-RPC messages out of text that a server sent, checked loosely: the SDK's client checks what it uses. */
import type { JSONRPCMessage, JSONRPCRequest } from "@modelcontextprotocol/sdk/types.js";

export const isMessage = (value: unknown): value is JSONRPCMessage =>
  typeof value === "object" && value !== null && (value as { jsonrpc?: unknown }).jsonrpc === "2.0";

export const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest =>
  "method" in message && "id" in message && message.id !== undefined;

/** One message or a batch (MCP 2025-03-26). Undefined where the text is not JSON or holds anything else. */
export function parseMessages(text: string): JSONRPCMessage[] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const messages = Array.isArray(value) ? value : [value];
    return messages.every(isMessage) ? messages : undefined;
  } catch {
    return undefined;
  }
}
