/**
 * A call of a tool that is not declared. Pi refuses it with "Tool x not found" and asks no extension; but the
 * result can still be put in better words before the model reads it, and the tool that was meant can be loaded.
 * Calls that have nothing to do with MCP keep Pi's words.
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

/** For `message_end`: the message in better words, or undefined to leave it as it is. */
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
