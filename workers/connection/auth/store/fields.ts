/**
 * Single values from a stored file, which a person or another program may have written. Each function answers undefined
 * for a value of the wrong type, length or characters. Pure.
 */
import { withoutBom } from "../../../../src/shared/text/reading.ts";

const TOKEN_CHARS = 16 * 1024;
const TEXT_CHARS = 8 * 1024;
/** The latest time that a Date can hold, in milliseconds. */
const LATEST_MS = 8.64e15;
/** A smaller number counts seconds: as milliseconds it would be a time before March 1973. */
const LEAST_MS = 1e11;

/** The value of a JSON text, also behind a byte-order mark; undefined if the text is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(withoutBom(text));
  } catch {
    // The message of the error quotes the text, which holds secrets.
    return undefined;
  }
}

/** Printable ASCII without spaces, which every token of RFC 6750, section 2.1, is. */
export const tokenOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.length <= TOKEN_CHARS && /^[!-~]+$/.test(value) ? value : undefined;

/** Printable ASCII, which every refresh token of RFC 6749, appendix A.17, is. */
export const refreshTokenOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.length <= TOKEN_CHARS && /^[ -~]+$/.test(value) ? value : undefined;

/** A text in one line, with at least one character. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.length <= TEXT_CHARS && /^\P{Cc}+$/u.test(value) ? value : undefined;

/** An http or https URL as it is written. */
export function webUrlOf(value: unknown): string | undefined {
  const text = textOf(value);
  return text !== undefined && /^https?:\/\/\S+$/i.test(text) && URL.canParse(text) ? text : undefined;
}

/** Milliseconds since the epoch. */
export const timeOf = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 0 && value <= LATEST_MS ? value : undefined;

/** A number, or a text with one, as some programs write it. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\d{1,16}(\.\d+)?$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** Milliseconds since the epoch, of a time in seconds or in milliseconds. */
export function instantOf(value: unknown): number | undefined {
  const number = numberOf(value);
  return timeOf(number !== undefined && number < LEAST_MS ? number * 1_000 : number);
}

/** An object with the key, or without any key if there is no value. */
export const optional = <K extends string, T>(key: K, value: T | undefined): { [P in K]?: T } =>
  (value === undefined ? {} : { [key]: value }) as { [P in K]?: T };
