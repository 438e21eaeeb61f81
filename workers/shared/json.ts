/**
 * JSON beyond `JSON.parse` and `JSON.stringify`: what parsing loses, equality, one text for equal data, and the hash of a
 * server's definition. Pure.
 *
 * Parsing loses digits of a number, its spelling (`1.0`, `-0`, `1e-400`), and the first of two equal keys of an object.
 */
import { createHash } from "node:crypto";

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

/** Characters of a string that are read one by one before the next quote is searched: a search has a cost of its own. */
const STEP_CHARS = 64;

/** The position behind the string whose opening quote is at `at`. Valid JSON always has its closing quote. */
function skipString(text: string, at: number): number {
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

/** A number of fewer characters without an exponent keeps its value in `JSON.parse`, the sign of `-0` excepted. */
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
      at = skipString(text, at);
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

/**
 * Finds each number that `readNumber` may find changed, and little else: the engine looks through a text three times as fast
 * as code that runs for the first time. Its repetitions are bounded, see text/unprintable.ts.
 */
const MAYBE_CHANGED = /[:,[\s]-?(?:(?<=-)0|[\d.]{15}|\d[\d.]{0,13}[eE])/;

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
  if (!MAYBE_CHANGED.test(text)) return;
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

/** The object without its keys that are undefined, so that it holds what JSON would hold. */
type Known<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

export const known = <T extends object>(values: T): Known<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Known<T>;

/** Values: objects, lists and scalars; characters of keys and texts, and `SCALAR_CHARS` for each other scalar. */
export interface Size {
  nodes: number;
  chars: number;
}

/** Stands for the digits of a number, or for a word of JSON. */
const SCALAR_CHARS = 8;

/**
 * The size of a JSON value. The count stops soon after it exceeds one of the limits. Without recursion, since the depth may
 * be what is too large.
 */
export function sizeOf(value: unknown, limit: Size & { depth?: number }): Size & { depth: number } {
  const size = { nodes: 0, chars: 0, depth: -1 };
  const { depth: deepest = Infinity } = limit;
  let level = [value];
  while (
    level.length > 0 &&
    size.nodes <= limit.nodes &&
    size.chars <= limit.chars &&
    size.depth <= deepest
  ) {
    const next: unknown[] = [];
    size.depth++;
    size.nodes += level.length;
    for (const node of level) {
      if (Array.isArray(node)) {
        for (const child of node) next.push(child);
      } else if (typeof node === "object" && node !== null) {
        for (const key of Object.keys(node)) {
          size.chars += key.length;
          next.push((node as Record<string, unknown>)[key]);
        }
      } else {
        size.chars += typeof node === "string" ? node.length : SCALAR_CHARS;
      }
    }
    level = next;
  }
  return size;
}

export function isWithin(value: unknown, limit: Size & { depth?: number }): boolean {
  const { nodes, chars, depth } = sizeOf(value, limit);
  return nodes <= limit.nodes && chars <= limit.chars && depth <= (limit.depth ?? Infinity);
}

/**
 * Deep equality of JSON values, without recursion, so that depth costs memory only. The order of keys does not count;
 * `0` and `-0` differ.
 */
export function sameJson(left: unknown, right: unknown): boolean {
  const open: [unknown, unknown][] = [[left, right]];
  for (let pair = open.pop(); pair; pair = open.pop()) {
    const [a, b] = pair;
    if (typeof a !== "object" || a === null || typeof b !== "object" || b === null) {
      if (!Object.is(a, b)) return false;
      continue;
    }
    const keys = Object.keys(a);
    if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(b).length) return false;
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false;
      open.push([Reflect.get(a, key), Reflect.get(b, key)]);
    }
  }
  return true;
}

/** `before` if it equals `now`, else `now`, so that a comparison by identity sees no change. */
export const keepSame = <T>(before: T | undefined, now: T): T =>
  before !== undefined && sameJson(before, now) ? before : now;

/**
 * JSON with sorted keys, so that equal data has equal texts, for comparing and hashing. A key without a value is left out,
 * or, with `writesAbsent`, has the value `undefined`.
 */
export function canonical(value: unknown, writesAbsent = false): string {
  const json = (inner: unknown): string => canonical(inner, writesAbsent);
  if (Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (typeof value !== "object" || value === null) {
    return JSON.stringify(value) ?? (writesAbsent ? "undefined" : "null");
  }
  const entries = Object.entries(value)
    .filter(([, entry]) => writesAbsent || entry !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, entry]) => `${JSON.stringify(key)}:${json(entry)}`).join(",")}}`;
}

/*
 * The hash of a server definition: SHA-256 over the keys that decide which tools a server has. Keys are sorted, so
 * their order never matters; lifecycle, timeouts and `debug` stay out.
 *
 * The hashed text has the form of pi-mcp-adapter 2.36.0, so that both extensions read each other's entries: it holds
 * every key, absent ones as `undefined`, also the last three, which only that adapter knows.
 */

export const HASHED_KEYS = [
  "args",
  "auth",
  "bearerToken",
  "bearerTokenEnv",
  "command",
  "cwd",
  "env",
  "excludeTools",
  "exposeResources",
  "headers",
  "includeTools",
  "url",
  "protocolVersion",
  "requestHeadersCommand",
  "socket",
] as const;

/**
 * Key of the session's folder, for a server that would be another program in another folder. Any other definition lacks
 * the key, so that its hash equals the adapter's. No file can set it: see cache-identity.ts.
 */
export const FOLDER_KEY = "#folder";

/**
 * Key that the adapter does not hash. With other rights or another client a server may list other tools, so a
 * definition that has the key has a hash of its own.
 */
export const OAUTH_KEY = "oauth";

/** Hex SHA-256 of one definition as it stands in the file, before interpolation, so without resolved secrets. */
export function hashDefinition(definition: Record<string, unknown>): string {
  const hashed = Object.fromEntries(HASHED_KEYS.map((key) => [key, definition[key]]));
  for (const key of [FOLDER_KEY, OAUTH_KEY]) {
    const value = definition[key];
    if (value !== undefined) hashed[key] = value;
  }
  return createHash("sha256").update(canonical(hashed, true)).digest("hex");
}

/** The hashes of several definitions, in their order. */
export function hashDefinitions(definitions: readonly Record<string, unknown>[]): string[] {
  return definitions.map(hashDefinition);
}
