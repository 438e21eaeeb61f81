/**
 * Measures what it would cost to parse a JSON text, by counting over its bytes: `JSON.parse` is native and cannot be
 * stopped, so a text that does not fit into the heap ends the whole process. Also finds the id of the request that the
 * message answers, if the outermost object names one. Never fails: the counts of a text that is not JSON mean nothing.
 */

export interface JsonSize {
  /** About the number of keys, scalars and containers, counted by separators. Empty containers count twice. */
  values: number;
  depth: number;
  /** Text of the outermost object's `id`; undefined if there is none or it is too long. */
  id: string | undefined;
  /** The outermost object has a `method`: it is a request or a notification. */
  hasMethod: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Meanings of a byte outside of strings. */
const PLAIN = 0;
const SEPARATOR = 1;
const OPEN = 2;
const CLOSE = 3;
const STRING = 4;
const KIND = new Uint8Array(256);
KIND[COLON] = SEPARATOR;
KIND[0x2c] = SEPARATOR;
KIND[0x5b] = OPEN;
KIND[0x7b] = OPEN;
KIND[0x5d] = CLOSE;
KIND[0x7d] = CLOSE;
KIND[QUOTE] = STRING;

/** Bytes of a string that are read one by one before the next quote is searched: a search has a cost of its own. */
const STEP_BYTES = 128;
/** `method` with each character as an escape of six bytes, and both quotes. */
const KEY_BYTES = 40;
const ID_BYTES = 200;

/** A key as it reads: JSON may write any character of it as an escape (RFC 8259, section 7). */
function keyOf(text: string): string {
  if (!text.includes("\\")) return text;
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text;
  }
}

/** Position of the quote that ends the string with its first byte at `start`, or the length of the text. */
function endOfString(bytes: Buffer, start: number): number {
  let at = start;
  while (true) {
    const stop = Math.min(bytes.length, at + STEP_BYTES);
    while (at < stop) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      at += byte === BACKSLASH ? 2 : 1;
    }
    if (at >= bytes.length) return bytes.length;
    // No backslash stands before `at`, so the backslashes before the next quote say whether that quote ends the string.
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return bytes.length;
    let first = quote;
    while (first > at && bytes[first - 1] === BACKSLASH) first--;
    if ((quote - first) % 2 === 0) return quote;
    at = quote + 1;
  }
}

export function measureJson(bytes: Buffer): JsonSize {
  let values = 0;
  let depth = 0;
  let deepest = 0;
  let hasMethod = false;
  let id: string | undefined;
  /** The last string of the outermost object, if it is short enough to be `id` or `method`. */
  let word = "";
  let idFrom = -1;
  let at = 0;

  /** A key or a value of the outermost object ends here. */
  const onOutermost = (): void => {
    if (idFrom !== -1) {
      id = at - idFrom <= ID_BYTES ? bytes.toString("utf8", idFrom, at).trim() : undefined;
      idFrom = -1;
    }
    if (bytes[at] !== COLON) return;
    const key = keyOf(word);
    if (key === "id") idFrom = at + 1;
    if (key === "method") hasMethod = true;
  };

  while (at < bytes.length) {
    const kind = KIND[bytes[at] ?? 0];
    if (kind === PLAIN) {
      at++;
    } else if (kind === STRING) {
      const end = endOfString(bytes, at + 1);
      if (depth === 1) word = end - at <= KEY_BYTES ? bytes.toString("latin1", at + 1, end) : "";
      at = end + 1;
    } else {
      if (depth === 1 && kind !== OPEN) onOutermost();
      if (kind === CLOSE) depth--;
      else values++;
      if (kind === OPEN && ++depth > deepest) deepest = depth;
      at++;
    }
  }
  return { values, depth: deepest, id, hasMethod };
}
