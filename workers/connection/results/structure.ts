/**
 * Finds data in a text, as opposed to prose, and its outline: JSON, also after a few words (`Result: {…`), and JSON
 * lines, which are outlined by the first of them. Pure.
 */
import { outlineJson } from "./outline.ts";

/** A text with lines of at least this average length is data, not prose. */
const DATA_LINE_BYTES = 1_000;
/** Limit for the words before the JSON, such as a label. */
const PREFIX_CHARS = 200;
/** Limit for brackets in those words that are tried as the start of JSON: each may cost a scan of the whole text. */
const BRACKETS_TRIED = 4;

export interface Structure {
  /** Words before the JSON, shown as they are. May be empty. */
  prefix: string;
  /** The JSON without those words. */
  text: string;
  outline: string;
  /** Number of JSON lines; the outline is the outline of the first one. Absent: one value. */
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

/** The outline has about `maxChars` characters. Undefined for prose, and for anything but JSON. */
export function structureOf(
  text: string,
  { bytes, lines, maxChars }: { bytes: number; lines: number; maxChars: number },
): Structure | undefined {
  if (bytes / lines < DATA_LINE_BYTES) return undefined;
  return (lines > 1 ? jsonLines(text, maxChars) : undefined) ?? behindWords(text, maxChars);
}
