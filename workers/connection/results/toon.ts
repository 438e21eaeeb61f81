/**
 * Writes JSON as TOON (Token-Oriented Object Notation) if that is shorter and loses nothing: the result is decoded
 * again and compared. Pure.
 */
import { decode, encode } from "@toon-format/toon";
import { parsedWithoutLoss, sameJson } from "../../shared/json.ts";
import { splitLabel } from "./label.ts";

/** The output guard cuts a longer text anyway, and its file is more useful as JSON. */
const MAX_CHARS = 1024 * 1024;
const MARK = "TOON:\n";
/** Whether `settings.toonEncode` (`true`, or names of servers) asks for it. */
export const toonWanted = (setting: unknown, server: string): boolean =>
  setting === true || (Array.isArray(setting) && setting.includes(server));

/**
 * The text as TOON with a mark, or the text itself if it is not JSON or TOON would not be shorter or not the same. The
 * label of an embedded resource stays before it.
 */
export function toonOr(text: string): string {
  const { label, body: json } = splitLabel(text);
  if (json.length > MAX_CHARS || !/^\s*[[{]/.test(json)) return text;
  try {
    const value: unknown = JSON.parse(json);
    if (!parsedWithoutLoss(json, value)) return text;
    const encoded = `${MARK}${encode(value)}`;
    // JSON escapes half of a surrogate pair and TOON does not: it would not reach the model.
    if (Buffer.byteLength(encoded) >= Buffer.byteLength(json) || !encoded.isWellFormed()) return text;
    return sameJson(decode(encoded.slice(MARK.length)), value) ? `${label}${encoded}` : text;
  } catch {
    // The text is not JSON, is nested too deep, or holds a value that TOON cannot express: it stays as it is.
    return text;
  }
}
