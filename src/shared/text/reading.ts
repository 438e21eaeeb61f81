/**
 * What a text from outside says: JSON with its numbers as they are written, a byte-order mark, percent-encoded text, which
 * address a browser may open, and how far a word is from the one that may have been meant. Pure.
 */
/** `source`: the text of a value that is no list and no object. Older engines tell nothing. */
type Revived = { source?: string } | undefined;

/** False for a whole number that would become another one, and for one beyond the range. `text`: a decimal number. */
export function isExact(text: string): boolean {
  const number = Number(text);
  return Number.isFinite(number) && (!/^[+-]?\d+$/.test(text) || BigInt(number) === BigInt(text));
}

/** Like `JSON.parse`, and throws for a number that would be sent as another one. */
export const parseArguments = (json: string): unknown =>
  JSON.parse(json, (_key, value: unknown, context?: Revived) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || isExact(source)) return value;
    const sent = JSON.stringify(value);
    throw new Error(
      `the number ${source.slice(0, 40)} would be sent as ${sent}: write it as a text if the tool takes one`,
    );
  });

/** Of Node 22 and later (ECMA-262, JSON.rawJSON): `JSON.stringify` writes the text as it is. */
const { rawJSON: rawJson } = JSON as { rawJSON?: (text: string) => unknown };

/** Only a text with such a run of digits, or with an exponent, may hold a number that parsing changes. */
const MAY_CHANGE = /\d{16}|\d\.\d{15}|\d[eE][+-]?\d/;

/** Like `JSON.parse`; `JSON.stringify` then writes each number as the text has it. Such a value is only for that. */
export const parseToPrint = (json: string): unknown =>
  MAY_CHANGE.test(json)
    ? JSON.parse(json, (_key, value: unknown, context?: Revived) => {
        const source = context?.source;
        return typeof value === "number" && source !== undefined && String(value) !== source
          ? (rawJson?.(source) ?? value)
          : value;
      })
    : JSON.parse(json);

/** A regular expression that matches exactly this text. */
export const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The byte-order mark that some editors put before a text. */
export const BOM = "\uFEFF";

export const withoutBom = (text: string): string => (text.startsWith(BOM) ? text.slice(BOM.length) : text);

/** The decoded text, or the text itself if it is not well encoded. Never throws, unlike `decodeURIComponent`. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The host of a `URL`, which has brackets around an IPv6 address. */
export const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);

/** https, or http on this machine: any other scheme would start another program. Takes a parsed `URL`; null: no URL. */
export const isOpenable = (url: { protocol: string; hostname: string } | null): boolean =>
  url !== null && (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url.hostname)));

/** Longer words are compared by their start: a name in Pi has 64 characters at most. */
export const COMPARED_CHARS = 80;

/** The rows of the table, used again for each pair of words. */
const row = (): Int32Array => new Int32Array(COMPARED_CHARS + 1);
let twoUp = row();
let up = row();
let line = row();

/**
 * The number of letters to add, drop, replace or swap with their neighbour, or `most + 1` if the number is larger
 * than `most`. Only the cells within `most` of the table's diagonal are filled.
 */
export function slipsBetween(first: string, second: string, most: number): number {
  if (Math.abs(first.length - second.length) > most) return most + 1;
  const a = first.slice(0, COMPARED_CHARS);
  const b = second.slice(0, COMPARED_CHARS);
  let from = 0;
  while (from < a.length && from < b.length && a.charCodeAt(from) === b.charCodeAt(from)) from++;
  let [rows, columns] = [a.length - from, b.length - from];
  while (rows > 0 && columns > 0 && a.charCodeAt(from + rows - 1) === b.charCodeAt(from + columns - 1)) {
    rows--;
    columns--;
  }
  // Words longer than COMPARED_CHARS may differ in length only behind that many characters.
  if (Math.abs(rows - columns) > most) return most + 1;
  const tooMany = most + 1;
  for (let column = 0; column <= columns; column++) up[column] = Math.min(column, tooMany);
  for (let at = 1; at <= rows; at++) {
    const start = Math.max(1, at - most);
    const end = Math.min(columns, at + most);
    line[start - 1] = start === 1 ? Math.min(at, tooMany) : tooMany;
    let least = line[start - 1] as number;
    for (let column = start; column <= end; column++) {
      const letter = a.charCodeAt(from + at - 1);
      const other = b.charCodeAt(from + column - 1);
      let cost = (up[column - 1] as number) + (letter === other ? 0 : 1);
      // The cells beyond the band hold more than `most`.
      if (column < at + most) cost = Math.min(cost, (up[column] as number) + 1);
      cost = Math.min(cost, (line[column - 1] as number) + 1);
      const isSwapped =
        at > 1 &&
        column > 1 &&
        letter === b.charCodeAt(from + column - 2) &&
        a.charCodeAt(from + at - 2) === other;
      if (isSwapped) cost = Math.min(cost, (twoUp[column - 2] as number) + 1);
      line[column] = cost;
      if (cost < least) least = cost;
    }
    if (least > most) return tooMany;
    const free = twoUp;
    twoUp = up;
    up = line;
    line = free;
  }
  return Math.min(up[columns] as number, tooMany);
}
