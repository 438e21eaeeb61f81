/** What an error of a client tells about the era of the server. Pure. */
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { type Evidence, UNSUPPORTED_VERSION } from "./modern/era.ts";
import { isTimeout, sentData } from "./sdk-errors.ts";

/** A result that does not belong to the era that was tried. */
export class OtherEra extends Error {
  readonly result: Record<string, unknown>;

  constructor(result: Record<string, unknown>) {
    super("its answer belongs to another revision of the protocol");
    this.name = "OtherEra";
    this.result = result;
  }
}

/** The SDK's own words. Servers answer the same code, -32000, for errors of any kind. */
const CLOSED = "MCP error -32000: Connection closed";

/** The SDK's words about a handshake that a server answers with a version that the SDK does not know. */
const OTHER_VERSION = /^Server's protocol version is not supported: (\S{1,100})$/;

export function evidenceOf(error: unknown): Evidence {
  if (error instanceof OtherEra) return { kind: "result", result: error.result };
  const [message, version] = (error instanceof Error && OTHER_VERSION.exec(error.message)) || [];
  if (message !== undefined)
    return { kind: "error", error: { code: UNSUPPORTED_VERSION, message, data: { supported: [version] } } };
  if (!(error instanceof McpError)) return { kind: "other" };
  if (isTimeout(error)) return { kind: "silence" };
  if (error.message === CLOSED) return { kind: "ended" };
  return { kind: "error", error: { code: error.code, message: error.message, data: sentData(error).data } };
}
