/**
 * Adds the expected parameters to a refusal of Pi. Pi itself refuses arguments that do not fit a tool's schema, before
 * any extension sees the call, and says only what is wrong.
 */
import type { Catalog } from "../../catalog/catalog.ts";
import type { FinishedMessage } from "../../pi/api.ts";
import type { TextContent } from "../../pi/tools.ts";
import { expectedLine } from "../definition/definition.ts";

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
