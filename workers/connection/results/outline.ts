/**
 * Finds data in a text, as opposed to prose: JSON, also after a few words (`Result: {…`), and JSON lines, which are
 * outlined by the first of them. Outlines it by its structure: keys, array lengths, first items. Reads the text once from
 * start to end without parsing it into objects, so that size costs only time and depth costs nothing. Pure.
 */

import { grouped } from "../../../src/shared/text/amounts.ts";
import { withoutHalfAtEnd } from "../../../src/shared/text/unprintable.ts";

/** A number of things in a text for people and models, such as `1,234 lines` or `1 line`. Pure. */
export const amount = (count: number, noun: string): string =>
  `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const DEPTH_SHOWN = 6;
const KEYS_SHOWN = 50;
/** Number of items shown of an array, by depth: more of the outermost array, which the call asked for. */
const ITEMS_SHOWN = [5, 5, 3, 2];
const STRING_CHARS = 200;

/** The text is not one JSON value. */
class NotJson extends Error {}

class Scanner {
  at = 0;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Code of the next character that is not white space; -1 at the end. */
  peek(): number {
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
    }
    return -1;
  }

  take(code: number): void {
    if (this.peek() !== code) throw new NotJson();
    this.at++;
  }

  /** Skips a string and returns the index of its first character; `at` is then behind the closing quote. */
  string(): number {
    this.take(QUOTE);
    const begin = this.at;
    for (let quote = this.text.indexOf('"', begin); quote !== -1; quote = this.text.indexOf('"', quote + 1)) {
      let slashes = 0;
      while (this.text.charCodeAt(quote - 1 - slashes) === BACKSLASH && quote - slashes > begin) slashes++;
      if (slashes % 2 === 0) {
        this.at = quote + 1;
        return begin;
      }
    }
    throw new NotJson();
  }

  /** Skips a number or `true`, `false`, `null`, and returns the index at which it begins. */
  literal(): number {
    const begin = this.at;
    for (; this.at < this.text.length; this.at++) {
      const code = this.text.charCodeAt(this.at);
      const digitOrSign = (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2e || code === 0x2b;
      const letter = (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
      if (!digitOrSign && !letter) break;
    }
    if (this.at === begin) throw new NotJson();
    return begin;
  }

  /** Skips one value of any depth. */
  skip(): void {
    let depth = 0;
    do {
      const code = this.peek();
      if (code === QUOTE) this.string();
      else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
        depth++;
        this.at++;
      } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) {
        depth--;
        this.at++;
      } else if ((code === COMMA || code === COLON) && depth > 0) this.at++;
      else this.literal();
    } while (depth > 0);
    if (depth < 0) throw new NotJson();
  }
}

/** A string as the JSON text writes it, cut between two characters. */
function stringToken(scanner: Scanner): string {
  const begin = scanner.string();
  const length = scanner.at - 1 - begin;
  if (length <= STRING_CHARS) return scanner.text.slice(begin - 1, scanner.at);
  const start = scanner.text
    .slice(begin, begin + STRING_CHARS)
    .replace(/(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$/, "$1");
  const cut = withoutHalfAtEnd(start);
  return `"${cut}..." (${amount(length, "character")})`;
}

function literalToken(scanner: Scanner): string {
  const begin = scanner.literal();
  return scanner.text.slice(begin, Math.min(scanner.at, begin + STRING_CHARS));
}

class Outline {
  readonly #scanner: Scanner;
  readonly #maxChars: number;
  readonly #lines: string[] = [];
  #chars = 0;

  constructor(scanner: Scanner, maxChars: number) {
    this.#scanner = scanner;
    this.#maxChars = maxChars;
  }

  get #full(): boolean {
    return this.#chars >= this.#maxChars;
  }

  #add(depth: number, line: string): number {
    this.#chars += line.length + depth * 2 + 1;
    return this.#lines.push(`${"  ".repeat(depth)}${line}`) - 1;
  }

  /** Reads the members of an object or array between its brackets: counts all, shows the first `shown`. */
  #members(depth: number, close: number, shown: number, each: (show: boolean) => void): number {
    let members = 0;
    this.#scanner.at++;
    if (this.#scanner.peek() !== close) {
      for (;;) {
        each(members < shown && !this.#full);
        members++;
        if (this.#scanner.peek() !== COMMA) break;
        this.#scanner.at++;
      }
    }
    this.#scanner.take(close);
    const hidden = members - shown;
    if (hidden > 0 && depth < DEPTH_SHOWN && !this.#full) this.#add(depth + 1, `... ${grouped(hidden)} more`);
    return members;
  }

  /** One value as lines; `label` stands before it. */
  value(depth: number, label: string): void {
    const code = this.#scanner.peek();
    if (code === QUOTE) this.#add(depth, label + stringToken(this.#scanner));
    else if (code === OPEN_OBJECT) this.#object(depth, label);
    else if (code === OPEN_ARRAY) this.#array(depth, label);
    else this.#add(depth, label + literalToken(this.#scanner));
  }

  #object(depth: number, label: string): void {
    const head = this.#add(depth, label);
    const shown = depth < DEPTH_SHOWN ? KEYS_SHOWN : 0;
    const members = this.#members(depth, CLOSE_OBJECT, shown, (show) => {
      if (this.#scanner.peek() !== QUOTE) throw new NotJson();
      const key = show ? stringToken(this.#scanner) : this.#scanner.skip();
      this.#scanner.take(COLON);
      if (show) this.value(depth + 1, `${key}: `);
      else this.#scanner.skip();
    });
    this.#lines[head] += `object, ${amount(members, "key")}`;
  }

  #array(depth: number, label: string): void {
    const head = this.#add(depth, label);
    const shown = depth < DEPTH_SHOWN ? (ITEMS_SHOWN[depth] ?? 1) : 0;
    const members = this.#members(depth, CLOSE_ARRAY, shown, (show) => {
      if (show) this.value(depth + 1, "- ");
      else this.#scanner.skip();
    });
    this.#lines[head] += `array, ${amount(members, "item")}`;
  }

  toString(): string {
    return this.#lines.join("\n");
  }
}

/**
 * An outline of about `maxChars` characters. Undefined if the text is not one JSON object or array. Lenient: the
 * scanner follows brackets and strings, and does not validate the values that it skips.
 */
function outlineJson(text: string, maxChars: number): string | undefined {
  const scanner = new Scanner(text);
  const first = scanner.peek();
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return undefined;
  const outline = new Outline(scanner, maxChars);
  try {
    outline.value(0, "");
  } catch (error) {
    if (error instanceof NotJson) return undefined;
    throw error;
  }
  return scanner.peek() === -1 ? outline.toString() : undefined;
}

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
