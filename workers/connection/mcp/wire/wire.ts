/**
 * Messages and transports as types, under the SDK's names. The SDK stays behind the folder mcp: everyone else imports
 * these types from here, so that another protocol era needs another `wire.ts` and no other file.
 */
export type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js";
export type {
  CallToolResult,
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCRequest,
  RequestId,
} from "@modelcontextprotocol/sdk/types.js";
