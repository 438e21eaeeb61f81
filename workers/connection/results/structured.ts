/**
 * `structuredContent` (MCP 2025-11-25, server/tools, structured content). A script gets it as it is, and the model
 * gets it once: servers repeat it as text, as the specification asks, and then the text is enough. Pure.
 */

import type { ResultContent } from "../../../src/shared/protocol/calls.ts";
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { jsonOf, sameJson } from "../../shared/json.ts";
import { splitLabel } from "./label.ts";

export interface Structured {
  value: unknown;
  /** `value` as JSON, with the server's own numbers. */
  json: string;
}

/** Undefined without structured content; `problem` if it cannot be written as JSON. */
export function readStructured(value: unknown): Structured | { problem: string } | undefined {
  if (value === undefined || value === null) return undefined;
  try {
    return { value, json: jsonOf(value) };
  } catch (error) {
    // V8 gives up on extreme depth.
    return { problem: (error as Error).message };
  }
}

function parsed(text: string): { value: unknown } | undefined {
  const first = text.trimStart().slice(0, 1);
  if (first !== "{" && first !== "[") return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The text without the label of an embedded resource, and without the fence of a block such as ```json … ``` */
function bare(text: string): string {
  const { body } = splitLabel(text);
  const open = body.indexOf("```");
  const start = body.indexOf("\n", open);
  const end = body.lastIndexOf("```");
  return open === -1 || start === -1 || end <= start ? body : body.slice(start + 1, end).trimEnd();
}

const saysValue = (text: string, value: unknown): boolean => {
  if (typeof value === "string") return text === value;
  if (typeof value !== "object" || value === null) return text === String(value);
  const read = parsed(text);
  return read !== undefined && sameJson(read.value, value);
};

/** The value of the only key: some frameworks wrap a value that is not an object, as `{"result": [...]}`. */
function unwrapped(value: unknown): { value: unknown } | undefined {
  const entries = isObject(value) ? Object.values(value) : [];
  return entries.length === 1 ? { value: entries[0] } : undefined;
}

/** Whether the texts repeat the structured content: one text all of it, or each text one item. */
export function textSaysSame(texts: readonly string[], { value, json }: Structured): boolean {
  if (texts.some((text) => text === json || saysValue(text, value))) return true;
  const inner = unwrapped(value);
  if (!inner) return false;
  if (texts.some((text) => saysValue(text, inner.value))) return true;
  const items = inner.value;
  return (
    Array.isArray(items) &&
    items.length > 0 &&
    items.length === texts.length &&
    items.every((item, i) => saysValue(texts[i] ?? "", item))
  );
}

/** The structured content for the model: compact JSON, or nothing if these contents say the same. */
export function structuredForModel(
  structured: Structured,
  contents: readonly ResultContent[],
): ResultContent[] {
  const texts = contents.flatMap((content) => (content.type === "text" ? [content.text] : []));
  const isSaid = textSaysSame(texts, structured) || textSaysSame(texts.map(bare), structured);
  return isSaid ? [] : [textBlock(structured.json)];
}
