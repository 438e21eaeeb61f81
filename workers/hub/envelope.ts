/**
 * What the hub reads of a JSON-RPC message: the few parts that tell for whom it is, and where in its bytes they stand, so that
 * they can be replaced without parsing the rest. Reads byte by byte as the message comes, so a long message holds nobody up.
 * Of a key that stands twice the last one counts, as for `JSON.parse`. Pure.
 */
import { WAITS } from "../shared/hub/wire.ts";

/**
 * Bytes `from` to `to` of the message, and the JSON text that stands there: each character is one byte. Without text: it is no
 * text or number, or too long to be an id.
 */
export interface Part {
  from: number;
  to: number;
  text: string;
}

/** `_meta` of a notification of 2026-07-28 names its subscription by this key (MCP 2026-07-28, basic/subscriptions). */
export const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

/** The parts that are read, each by the keys that lead to it. */
const PARTS = {
  jsonrpc: ["jsonrpc"],
  id: ["id"],
  method: ["method"],
  /** Of a request (`params._meta`), and of a notification of progress (`params`). */
  token: ["params", "_meta", "progressToken"],
  progressOf: ["params", "progressToken"],
  cancels: ["params", "requestId"],
  subscription: ["params", "_meta", SUBSCRIPTION],
  waits: ["params", "_meta", WAITS],
  error: ["error"],
} as const;

export type Envelope = { -readonly [K in keyof typeof PARTS]?: Part };

/** What stands in a part, if it is a text; empty if it is anything else. */
export const wordOf = (part: Part | undefined): string | undefined => {
  if (part === undefined || !part.text.startsWith('"')) return part && "";
  try {
    return String(JSON.parse(part.text));
  } catch {
    return "";
  }
};

const NAMES = Object.keys(PARTS) as (keyof typeof PARTS)[];
const DEEPEST = 3;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const PLAIN = 0;
const COLON = 1;
const COMMA = 2;
const OPEN = 3;
const CLOSE = 4;
const STRING = 5;
const KIND = new Uint8Array(256);
KIND[0x3a] = COLON;
KIND[0x2c] = COMMA;
KIND[0x5b] = KIND[0x7b] = OPEN;
KIND[0x5d] = KIND[0x7d] = CLOSE;
KIND[QUOTE] = STRING;

/** A key or value of this length is none that is read: six bytes for each character of the longest key. */
const WORD_BYTES = 6 * SUBSCRIPTION.length + 2;
/** Bytes of a string that are read one by one before the next quote is searched: a search has a cost of its own. */
const STEP_BYTES = 128;

/** A key as it reads: JSON may write any character of it as an escape (RFC 8259, section 7). */
function keyOf(text: string): string {
  if (!text.includes("\\")) return text.slice(1, -1);
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

export class EnvelopeReader {
  readonly envelope: Envelope = {};
  /** Bytes read so far. */
  #read = 0;
  #depth = 0;
  /** Keys that lead to where the reader is, for the levels that matter. */
  readonly #keys: string[] = [];
  #isInString = false;
  #isEscaped = false;
  /** Start of the value that is being read, if it is one of `PARTS`. */
  #part: keyof typeof PARTS | undefined;
  #from = 0;
  #to = 0;
  /** What has been read of the last string or of the value, as far as it is short. */
  #word = "";
  #isWordLong = false;

  /** Reads the next bytes of the message. */
  push(bytes: Buffer): void {
    const { length } = bytes;
    const base = this.#read;
    let at = 0;
    while (at < length) {
      if (this.#isInString) {
        at = this.#string(bytes, at);
        continue;
      }
      const byte = bytes[at] ?? 0;
      const kind = KIND[byte];
      if (kind === PLAIN) {
        // A number, true, false, null or white space.
        if (this.#part !== undefined && byte > 0x20) this.#scalar(byte, base + at);
        at++;
        continue;
      }
      if (kind === STRING) {
        if (this.#depth <= DEEPEST) {
          if (this.#part !== undefined) this.#from = base + at;
          this.#word = '"';
          this.#isWordLong = false;
        }
        this.#isInString = true;
        at++;
        continue;
      }
      if (this.#depth <= DEEPEST) this.#structure(kind ?? PLAIN);
      if (kind === OPEN) this.#depth++;
      else if (kind === CLOSE) this.#depth--;
      at++;
    }
    this.#read += length;
  }

  #scalar(byte: number, at: number): void {
    if (this.#word === "") this.#from = at;
    this.#to = at + 1;
    if (this.#word.length < WORD_BYTES) this.#word += String.fromCharCode(byte);
    else this.#isWordLong = true;
  }

  #structure(kind: number): void {
    const depth = this.#depth;
    if (kind === COLON) {
      // The key of a value at this level: deeper keys belonged to the value before.
      this.#keys.length = Math.min(this.#keys.length, depth - 1);
      this.#keys[depth - 1] = this.#isWordLong ? "" : keyOf(this.#word);
      this.#part = depth === 0 ? undefined : this.#partHere();
      this.#word = "";
      this.#isWordLong = false;
      return;
    }
    if (this.#part !== undefined) {
      const text = kind === OPEN || this.#isWordLong ? "" : this.#word;
      this.envelope[this.#part] = { from: this.#from, to: this.#to, text };
      this.#part = undefined;
    }
    // A list has no keys: what stands in it leads nowhere.
    if (kind === OPEN) this.#keys.length = Math.min(this.#keys.length, depth);
    else if (kind === CLOSE) this.#keys.length = Math.min(this.#keys.length, Math.max(0, depth - 1));
  }

  #partHere(): keyof typeof PARTS | undefined {
    const keys = this.#keys;
    return NAMES.find((name) => {
      const path: readonly string[] = PARTS[name];
      return path.length === keys.length && path.every((key, level) => key === keys[level]);
    });
  }

  /** Position after the string that is being read, or after the bytes. */
  #string(bytes: Buffer, start: number): number {
    const end = this.#endOfString(bytes, start);
    const isWord = this.#depth <= DEEPEST;
    if (isWord && !this.#isWordLong) {
      if (this.#word.length + end - start > WORD_BYTES) this.#isWordLong = true;
      else this.#word += bytes.toString("latin1", start, end);
    }
    if (!this.#isInString && this.#part !== undefined) this.#to = this.#read + end;
    return end;
  }

  #endOfString(bytes: Buffer, start: number): number {
    const { length } = bytes;
    let at = start;
    while (at < length) {
      if (this.#isEscaped) {
        this.#isEscaped = false;
        at++;
        continue;
      }
      const stop = Math.min(length, at + STEP_BYTES);
      while (at < stop) {
        const byte = bytes[at];
        if (byte === QUOTE) {
          this.#isInString = false;
          return at + 1;
        }
        if (byte === BACKSLASH) {
          if (at + 1 >= length) {
            this.#isEscaped = true;
            return length;
          }
          at += 2;
        } else at++;
      }
      if (at >= length) break;
      // No backslash stands before `at`, so the backslashes before the next quote say whether that quote ends the string.
      const quote = bytes.indexOf(QUOTE, at);
      const before = quote === -1 ? length : quote;
      let first = before;
      while (first > at && bytes[first - 1] === BACKSLASH) first--;
      const isEscaped = (before - first) % 2 === 1;
      if (quote === -1) {
        this.#isEscaped = isEscaped;
        return length;
      }
      if (!isEscaped) {
        this.#isInString = false;
        return quote + 1;
      }
      at = quote + 1;
    }
    return length;
  }
}

/** A text in place of a part. */
export type Change = readonly [Part, text: string];

/** The bytes of the message with its parts replaced. Copies none of them. */
export function withChanges(pieces: readonly Buffer[], changes: readonly Change[]): Buffer[] {
  const sorted = changes.toSorted(([a], [b]) => a.from - b.from);
  const out: Buffer[] = [];
  let start = 0;
  let next = 0;
  for (const piece of pieces) {
    const end = start + piece.length;
    let from = 0;
    while (next < sorted.length) {
      const change = sorted[next];
      if (!change || change[0].from >= end) break;
      const [part, text] = change;
      // The part may go on in the next piece, or have begun in the one before.
      if (part.from >= start) {
        out.push(piece.subarray(from, part.from - start), Buffer.from(text, "latin1"));
      }
      if (part.to > end) {
        from = piece.length;
        break;
      }
      from = part.to - start;
      next++;
    }
    if (from < piece.length) out.push(piece.subarray(from));
    start = end;
  }
  return out.filter(({ length }) => length > 0);
}
