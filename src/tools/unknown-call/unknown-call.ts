/**
 * Calls that Pi refuses. Owns: the better words for the result, and loading the tool that was meant. Must not: touch
 * calls that have nothing to do with MCP, which keep Pi's words. Called by: session, for `message_end`.
 * Pi refuses a call of an undeclared tool with "Tool x not found" and asks no extension. The result can still be
 * replaced before the model reads it.
 * To explain another refusal: a function from the message to a better message, as refused-arguments.ts.
 */

import type { FinishedMessage } from "../../pi/api.ts";
import type { UnknownCallHost } from "./host.ts";

export { explainRefusedArguments } from "./refused-arguments.ts";

/** Name of the tool that Pi did not find; undefined for every other message. */
function refusedName({ role, toolName, isError, content }: FinishedMessage): string | undefined {
  if (role !== "toolResult" || isError !== true || toolName === undefined) return undefined;
  const [block] = Array.isArray(content) ? (content as { type: string; text?: string }[]) : [];
  return block?.text === `Tool ${toolName} not found` ? toolName : undefined;
}

/** For `message_end`: the message in better words, or undefined to leave the message as it is. */
export function explainUnknownCall<M extends FinishedMessage>(
  message: M,
  host: UnknownCallHost,
): Promise<M | undefined> | undefined {
  const name = refusedName(message);
  if (name === undefined) return undefined;
  return import("./run.ts")
    .then(({ answerUnknownCall }) => answerUnknownCall(name, host))
    .then((found) => {
      if (!found) return undefined;
      const { text, error } = found;
      const details = error && { ...error.data, code: error.code };
      return { ...message, content: [{ type: "text", text }], ...(details ? { details } : {}) };
    });
}
