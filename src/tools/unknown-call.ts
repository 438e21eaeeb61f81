/**
 * What the model reads where Pi refuses a call: a call of a tool that is not declared gets an answer of
 * unknown-call-answer.ts; arguments that do not fit get the expected parameters, since Pi says only what is wrong.
 */
import type { Catalog } from "../catalog/catalog.ts";
import type { FinishedMessage, TextContent } from "../pi/api.ts";
import { expectedLine } from "./definition.ts";
import type { UnknownCallHost } from "./host.ts";

/** Pi's words for arguments that it refuses. */
const isRefusal = (text: unknown, toolName: string): boolean =>
  typeof text === "string" && text.startsWith(`Validation failed for tool "${toolName}"`);

/** For `message_end`: the message with the expected parameters, or undefined to leave the message as it is. */
export function explainRefusedArguments<M extends FinishedMessage>(
  message: M,
  catalog: () => Catalog,
): M | undefined {
  const { role, toolName, isError, content } = message;
  if (role !== "toolResult" || isError !== true || toolName === undefined || !Array.isArray(content)) {
    return undefined;
  }
  const blocks = content as Partial<TextContent>[];
  if (blocks.length !== 1 || !isRefusal(blocks[0]?.text, toolName)) return undefined;
  const tool = catalog().get(toolName);
  return tool && { ...message, content: [...blocks, { type: "text", text: expectedLine(tool) }] };
}

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
  return import("./unknown-call-answer.ts")
    .then(({ answerUnknownCall }) => answerUnknownCall(name, host))
    .then((found) => {
      if (!found) return undefined;
      const { text, error } = found;
      const details = error && { ...error.data, code: error.code };
      return { ...message, content: [{ type: "text", text }], ...(details ? { details } : {}) };
    });
}
