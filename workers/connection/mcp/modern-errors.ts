/** What the errors of requests and tasks mean in the stateless era (MCP 2026-07-28; ext-tasks). Pure. */
import { McpError } from "@modelcontextprotocol/sdk/types.js";
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { outOfOrder, type Party } from "./modern/answers.ts";
import { isClosed, isTimeout } from "./sdk-errors.ts";

/** Whether a request got no answer: neither a result nor a refusal. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof ThreadsError
    ? error.code === "server_died" || error.code === "connect_failed"
    : isTimeout(error) || (!(error instanceof McpError) && !isClosed(error));

/** The error of a task for the JSON-RPC error with which it failed, which may have any shape. */
export function taskFailure(error: unknown, party: Pick<Party, "server" | "subject">): Error {
  if (!isObject(error) || typeof error.message !== "string")
    return outOfOrder(party, "failed as a task without a reason");
  const code = typeof error.code === "number" ? error.code : 0;
  return McpError.fromError(code, error.message, error.data);
}
