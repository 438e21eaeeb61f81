/**
 * What of a result is data rather than prose, and how it looks by its structure: JSON, also behind a few words
 * (`Result: {…`), and JSON lines by the first of them. Pure.
 */
import { outlineJson } from "./outline.ts";

/** A line this long on average is data, not prose: shown by its structure where it is JSON. */
const DATA_LINE_BYTES = 1_000;
/** Words before the JSON, such as a label. */
const PREFIX_CHARS = 200;
/** Brackets in those words at which JSON is looked for: each may cost a look at the whole text. */
const BRACKETS_TRIED = 4;

export interface Structure {
  /** Words before the JSON, shown as they are; may be empty. */
  prefix: string;
  /** Of the JSON, without the words. */
  text: string;
  outline: string;
  /** Of JSON lines: how many values; the outline is that of the first. */
  values?: number;
}

function behindWords(text: string, maxChars: number): Structure | undefined {
  const bracket = /[[{]/g;
  for (let tried = 0; tried < BRACKETS_TRIED; tried++) {
    const at = bracket.exec(text.slice(0, PREFIX_CHARS))?.index;
    if (at === undefined) return undefined;
    const json = text.slice(at);
    const outline = outlineJson(json, maxChars);
    if (outline !== undefined) return { prefix: text.slice(0, at).trimEnd(), text: json, outline };
  }
  return undefined;
}

const isValue = (line: string): boolean => /^\s*(\{.*\}|\[.*\])\s*$/s.test(line);

function jsonLines(text: string, maxChars: number): Structure | undefined {
  let values = 0;
  let outline: string | undefined;
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf("\n", at);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(at, end);
    at = end + 1;
    if (line.trim() === "") continue;
    if (!isValue(line)) return undefined;
    values++;
    outline ??= outlineJson(line, maxChars);
    if (outline === undefined) return undefined;
  }
  return outline !== undefined && values > 1 ? { prefix: "", text, outline, values } : undefined;
}

/** About `maxChars` of outline. Undefined for prose, and for anything that is no JSON. */
export function structureOf(
  text: string,
  { bytes, lines, maxChars }: { bytes: number; lines: number; maxChars: number },
): Structure | undefined {
  if (bytes / lines < DATA_LINE_BYTES) return undefined;
  return (lines > 1 ? jsonLines(text, maxChars) : undefined) ?? behindWords(text, maxChars);
}
