/**
 * The requests of a server: questions to the user (MCP 2025-11-25, client/elicitation), and the folders that its entry
 * lets it know (client/roots). The SDK's own handler would refuse a question whose schema is a little odd, so asks/ reads
 * the question.
 */
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import type { RequiredOutcome, ServerAsks } from "../asks/asks.ts";
import type { ConnectOptions } from "./connection.ts";
import { sentData } from "./sdk-errors.ts";

const ASK = "elicitation/create";
const ROOTS = "roots/list";
/** The server does not answer the call before the user has opened an address (the same page, "URL mode"). */
const URL_REQUIRED = -32042;

/** What the client can do. A server that can ask nobody often does without a question. */
export const capabilitiesOf = ({ asks, roots }: Pick<ConnectOptions, "asks" | "roots">): object => ({
  ...(asks ? { elicitation: { form: {}, url: {} } } : {}),
  // The folders of a connection never change: an edit of them makes another connection.
  ...(roots ? { roots: {} } : {}),
});

export function takeQuestions(
  client: Client,
  { asks, roots, onNote }: Pick<ConnectOptions, "asks" | "roots" | "onNote">,
): void {
  client.fallbackRequestHandler = async ({ method, params }, { signal }) => {
    if (method === ROOTS && roots) return { roots };
    if (method !== ASK)
      throw Object.assign(new Error("Method not found"), { code: ErrorCode.MethodNotFound });
    if (asks) return asks.create(params, signal);
    onNote("asks the user something although it was not told that it may; that is cancelled");
    return { action: "cancel" };
  };
}

/**
 * Asks the user to open the addresses that the error names. Undefined: it is another error. The call is not repeated,
 * because only the user knows when the page is done.
 */
export async function urlRequired(
  error: unknown,
  asks: ServerAsks | undefined,
  signal: AbortSignal,
): Promise<RequiredOutcome | undefined> {
  if (!(error instanceof McpError) || error.code !== URL_REQUIRED) return undefined;
  return asks ? asks.required(sentData(error).data, signal) : "none";
}
