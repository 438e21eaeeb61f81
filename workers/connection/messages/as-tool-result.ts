/**
 * The results of requests that a person makes, as those of a tool, which are shaped everywhere in one way. The thread for
 * long messages loads this file, and so nothing that it does not need.
 */
import { asList, isObject } from "../../../src/shared/protocol/values.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";

type Result = Record<string, unknown>;
export type ResultKind = "call" | "resource" | "prompt";

/** Without annotations: whom a block is meant for does not count, since the person asked for the prompt. */
const withoutAnnotations = (block: unknown): unknown => {
  if (!isObject(block)) return block;
  const { annotations: _annotations, ...rest } = block;
  return rest;
};

/**
 * The blocks of all messages of a prompt (MCP 2025-11-25, server/prompts). A message may hold one block or, from some
 * servers, a list of blocks. A line says where the role changes, because everything becomes one message of the user.
 */
function promptBlocks({ messages }: Result): unknown[] {
  const blocks: unknown[] = [];
  let role = "user";
  for (const message of asList(messages)) {
    if (!isObject(message)) continue;
    const speaker = message.role === "assistant" ? "assistant" : "user";
    if (speaker !== role) blocks.push({ type: "text", text: `[${speaker}]` });
    role = speaker;
    const { content } = message;
    for (const block of Array.isArray(content) ? content : [content]) blocks.push(withoutAnnotations(block));
  }
  return blocks;
}

/** The contents of a resource (the same revision, server/resources), as a tool that embeds the resource answers. */
const resourceBlocks = ({ contents }: Result): unknown[] =>
  asList(contents).map((resource) => ({ type: "resource", resource }));

/** What is no message in a prompt is left out. */
export function toolResultOf(kind: ResultKind, result: Result): CallToolResult {
  if (kind === "call") return result as CallToolResult;
  const blocks = kind === "prompt" ? promptBlocks(result) : resourceBlocks(result);
  return { content: blocks as CallToolResult["content"] };
}
