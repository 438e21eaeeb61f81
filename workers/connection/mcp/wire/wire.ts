/**
 * Messages and transports as types, under the SDK's names. Only the folder mcp imports the SDK; all other folders import
 * these types, so that another protocol era needs another `wire.ts` and no other file. Also the codes of JSON-RPC, and what
 * is remembered of a server of the stateless era. Loads nothing of the SDK, so that servers can load it at the start.
 */
import { ThreadsError } from "../../../../src/shared/protocol/errors.ts";

export type { Transport, TransportSendOptions } from "@modelcontextprotocol/sdk/shared/transport.js";
export type {
  CallToolResult,
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCRequest,
  RequestId,
} from "@modelcontextprotocol/sdk/types.js";

/** JSON-RPC 2.0, section 5.1. */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;

/** The revision of the stateless era that this client speaks. */
export const MODERN_VERSION = "2026-07-28";

/**
 * A server was called by what an earlier session remembered, and is another one now. It refused the request unseen, or was
 * never reached: nothing has run, and the request may be sent once the era is known.
 */
export class MustNegotiate extends ThreadsError {
  constructor(server: string) {
    super("server_died", `${server} no longer speaks the revision of MCP that it spoke before.`, {
      remedy: "The next call connects again.",
      data: { server },
    });
    this.name = "MustNegotiate";
  }
}
