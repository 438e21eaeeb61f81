/**
 * JSON as TOON (Token-Oriented Object Notation) where that is shorter and loses nothing: what was encoded
 * is decoded again and compared. Pure.
 */
import { decode, encode } from "@toon-format/toon";
import { sameJson } from "./content/same-json.ts";

/** A longer text is cut by the output guard anyway, and its file is of more use as JSON. */
const MAX_CHARS = 1024 * 1024;
const MARK = "TOON:\n";
/** A number of so many characters may hold more digits than a double keeps. */
const LONG_NUMBER = /(?<=[[,:\s])-?\d[\d.eE+-]{15,}/g;

/** Whether parsing would read a number as another one, for example an identifier of 20 digits. */
const losesDigits = (json: string): boolean =>
  (json.match(LONG_NUMBER) ?? []).some((digits) => String(Number(digits)) !== digits);

/** Whether `settings.toonEncode` (`true`, or names of servers) asks for it. */
export const toonWanted = (setting: unknown, server: string): boolean =>
  setting === true || (Array.isArray(setting) && setting.includes(server));

/** The text as TOON, marked as such; the text itself where it is no JSON, not shorter, or not the same. */
export function toonOr(json: string): string {
  if (json.length > MAX_CHARS || !/^\s*[[{]/.test(json) || losesDigits(json)) return json;
  try {
    const value: unknown = JSON.parse(json);
    const encoded = `${MARK}${encode(value)}`;
    if (Buffer.byteLength(encoded) >= Buffer.byteLength(json)) return json;
    return sameJson(decode(encoded.slice(MARK.length)), value) ? encoded : json;
  } catch {
    // No JSON, nested too deep, or something that TOON cannot say: the text stays as it is.
    return json;
  }
}
