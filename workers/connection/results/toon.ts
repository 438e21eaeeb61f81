/**
 * JSON as TOON (Token-Oriented Object Notation) where that is shorter and loses nothing: what was encoded
 * is decoded again and compared. Pure.
 */
import { decode, encode } from "@toon-format/toon";
import { parsedWithoutLoss } from "../../shared/json/lossless.ts";
import { sameJson } from "../../shared/json/same.ts";
import { splitLabel } from "./label.ts";

/** A longer text is cut by the output guard anyway, and its file is of more use as JSON. */
const MAX_CHARS = 1024 * 1024;
const MARK = "TOON:\n";
/** Whether `settings.toonEncode` (`true`, or names of servers) asks for it. */
export const toonWanted = (setting: unknown, server: string): boolean =>
  setting === true || (Array.isArray(setting) && setting.includes(server));

/**
 * The text as TOON, marked as such; the text itself where it is no JSON, not shorter, or not the same. The label
 * of an embedded resource stays before it.
 */
export function toonOr(text: string): string {
  const { label, body: json } = splitLabel(text);
  if (json.length > MAX_CHARS || !/^\s*[[{]/.test(json)) return text;
  try {
    const value: unknown = JSON.parse(json);
    if (!parsedWithoutLoss(json, value)) return text;
    const encoded = `${MARK}${encode(value)}`;
    // Half a surrogate pair, which JSON escapes and TOON does not, would not reach the model.
    if (Buffer.byteLength(encoded) >= Buffer.byteLength(json) || !encoded.isWellFormed()) return text;
    return sameJson(decode(encoded.slice(MARK.length)), value) ? `${label}${encoded}` : text;
  } catch {
    // No JSON, nested too deep, or something that TOON cannot say: the text stays as it is.
    return text;
  }
}
