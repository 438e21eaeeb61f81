/**
 * Arguments that do not fit a tool's schema are refused by Pi itself, before any extension. The result says
 * what is wrong; how the tool is called is put below it before the model reads it.
 */
import type { Catalog } from "../../catalog/catalog.ts";
import type { FinishedMessage, TextContent } from "../../pi/api.ts";
import { expectedLine } from "../definition/definition.ts";

/** Pi's words for arguments that it refuses. */
const isRefusal = (text: unknown, toolName: string): boolean =>
  typeof text === "string" && text.startsWith(`Validation failed for tool "${toolName}"`);

/** For `message_end`: the message with the expected parameters, or undefined to leave it as it is. */
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
