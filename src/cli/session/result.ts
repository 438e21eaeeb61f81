/** A result of a call as its server sent it: for programs, in the place of what the model would read. */
import type { CallResult } from "../../shared/protocol/calls.ts";
import { LIMITS } from "../../shared/protocol/limits.ts";
import { isObject } from "../../shared/protocol/values.ts";
import { parseToPrint } from "../../shared/text/reading.ts";
import { readRegular } from "../place/read-regular.ts";

export type Block = Record<string, unknown>;

export interface ServerResult {
  content: Block[];
  structuredContent?: unknown;
  isError?: boolean;
}

function parse(bytes: Uint8Array): ServerResult | undefined {
  try {
    const value: unknown = parseToPrint(new TextDecoder().decode(bytes));
    if (!isObject(value) || !Array.isArray(value.content)) return undefined;
    const asBlock = (block: unknown): Block =>
      isObject(block) ? block : { type: "text", text: String(block) };
    return { ...value, content: value.content.map(asBlock) };
  } catch {
    return undefined;
  }
}

/** What the server sent; what the model would read if that is too large and could not be stored (`isPart`). */
export function serverResult({ scriptResult, scriptProblem, scriptStoredAt, content, isError }: CallResult): {
  result: ServerResult;
  isPart: boolean;
} {
  const stored =
    scriptStoredAt === undefined ? undefined : readRegular(scriptStoredAt, 2 * LIMITS.messageBytes);
  const bytes = scriptResult ?? (stored && "bytes" in stored ? stored.bytes : undefined);
  const whole = bytes && parse(bytes);
  if (whole) return { result: whole, isPart: false };
  return {
    result: { content: content.map((block) => ({ ...block })), isError },
    isPart: scriptProblem !== undefined,
  };
}
