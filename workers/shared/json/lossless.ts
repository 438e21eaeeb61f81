/**
 * Finds out whether parsing a JSON text loses something: digits of a number, its spelling (`1.0`, `-0`, `1e-400`), or a
 * key that an object has twice. Keeps the text of a value whose numbers would come out as others. Pure.
 */

const OPEN = 0x5b;
const OPEN_OBJECT = 0x7b;
const CLOSE = 0x5d;
const CLOSE_OBJECT = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/** The position behind the string whose opening quote is at `at`. Valid JSON always has its closing quote. */
function skipString(text: string, at: number): number {
  let next = at + 1;
  while (next < text.length && text.charCodeAt(next) !== QUOTE) {
    next += text.charCodeAt(next) === BACKSLASH ? 2 : 1;
  }
  return next + 1;
}

/** Characters of a string that are read one by one before the next quote is searched: a search has a cost of its own. */
const STEP_CHARS = 64;

/** Does the same, and reads a long string faster. */
function skipLongString(text: string, at: number): number {
  const stop = Math.min(text.length, at + STEP_CHARS);
  let next = at + 1;
  while (next < stop) {
    const code = text.charCodeAt(next);
    if (code === QUOTE) return next + 1;
    next += code === BACKSLASH ? 2 : 1;
  }
  for (let quote = text.indexOf('"', next); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (first > next && text.charCodeAt(first - 1) === BACKSLASH) first--;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return text.length;
}

/** A number of fewer characters without an exponent comes out of `JSON.parse` as it is written, `-0` excepted. */
const SAFE_CHARS = 15;

/** The end of the number at `from`, and whether it may be spelled in another way after parsing. */
function readNumber(text: string, from: number): { end: number; changed: boolean } {
  let at = from + 1;
  let isOdd = text.charCodeAt(from) === MINUS && text.charCodeAt(at) === ZERO;
  for (; ; at++) {
    const code = text.charCodeAt(at);
    if (isDigit(code) || code === POINT || code === PLUS || code === MINUS) continue;
    // `e` or `E`
    if ((code | 0x20) !== 0x65) break;
    isOdd = true;
  }
  if (at - from <= SAFE_CHARS && !isOdd) return { end: at, changed: false };
  const digits = text.slice(from, at);
  return { end: at, changed: String(Number(digits)) !== digits };
}

/** The end of the object or list that begins at `from`, and whether parsing changes a number in it. */
function readSpan(text: string, from: number): { end: number; changed: boolean } {
  let depth = 0;
  let changed = false;
  for (let at = from; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipLongString(text, at);
    } else if (isDigit(code) || code === MINUS) {
      const number = readNumber(text, at);
      changed ||= number.changed;
      at = number.end;
    } else {
      at++;
      if (code === OPEN || code === OPEN_OBJECT) depth++;
      else if ((code === CLOSE || code === CLOSE_OBJECT) && --depth === 0) return { end: at, changed };
    }
  }
  return { end: text.length, changed };
}

/** Objects and lists -> their JSON as it came. */
const sources = new WeakMap<object, string>();

/** The JSON of the value. A value of `keepSource` is written with the numbers that came. Throws as `JSON.stringify`. */
export const jsonOf = (value: unknown): string =>
  (typeof value === "object" && value !== null ? sources.get(value) : undefined) ?? JSON.stringify(value);

/**
 * Keeps the text of a value in which `JSON.parse` has changed a number: more than 15 digits, or beyond the range of a
 * double (RFC 8259, section 6). `text`: valid JSON that holds the value as `key`, wherever. The time is linear in the
 * text.
 */
export function keepSource(text: string, key: string, value: object): void {
  const named = new RegExp(`"${key}"\\s*:\\s*(?=[[{])`, "g");
  let written: string | undefined;
  for (let found = named.exec(text); found; found = named.exec(text)) {
    // A quote behind a backslash is part of a string.
    if (text.charCodeAt(found.index - 1) === BACKSLASH) continue;
    const from = named.lastIndex;
    const { end, changed } = readSpan(text, from);
    named.lastIndex = end;
    if (!changed) continue;
    const source = text.slice(from, end);
    try {
      written ??= JSON.stringify(value);
      // The key may stand elsewhere in the message, too.
      if (JSON.stringify(JSON.parse(source)) === written) sources.set(value, source);
    } catch {
      // V8 gives up on extreme depth. Such a value cannot be shown with any numbers.
      return;
    }
  }
}

/** The number of members of all objects in the value. Without recursion, so that depth costs memory only. */
function countMembers(value: unknown): number {
  let members = 0;
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== "object" || next === null) continue;
    const values = Object.values(next);
    if (!Array.isArray(next)) members += values.length;
    for (const each of values) open.push(each);
  }
  return members;
}

/** True if `JSON.stringify` of the value says all that the text says. `text`: valid JSON. `value`: the parsed text. */
export function parsedWithoutLoss(text: string, value: unknown): boolean {
  const number = /-?[\d.eE+-]+/y;
  let colons = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = skipString(text, at);
    } else if (isDigit(code) || code === MINUS) {
      number.lastIndex = at;
      const [digits = ""] = number.exec(text) ?? [];
      if (String(Number(digits)) !== digits) return false;
      at += digits.length;
    } else {
      if (code === COLON) colons++;
      at++;
    }
  }
  // Parsing keeps only the last value of a key that comes twice, so the value then has fewer members than colons.
  return colons === countMembers(value);
}
