/**
 * Messages and transports as types, under the SDK's names. Only the folder mcp imports the SDK; all other folders import
 * these types, so that another protocol era needs another `wire.ts` and no other file.
 */
export type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js";
export type {
  CallToolResult,
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCRequest,
  RequestId,
} from "@modelcontextprotocol/sdk/types.js";
