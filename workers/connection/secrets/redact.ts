/**
 * Keeps secrets out of every text that leaves the worker: header values, environment values and tokens in each form in which
 * they may appear (as they are, percent-encoded, escaped in JSON or HTML, in hex, and in base64 with anything before and
 * behind), and all credentials after `Basic` or `Bearer`. To cover another encoding: `formsOf`. Pure.
 */

import { type ErrorData, type JsonValue, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { escapePattern } from "../../../src/shared/text/reading.ts";

/** A longer secret is looked for in pieces, so that no match is longer than `LONGEST_MATCH`. */
const PIECE_CHARS = 1_000;
/** No character takes more in any of its forms; `%E6%BC%A2` takes as many. */
const FORM_CHARS = 9;
/** No form has more characters than this. A text is redacted with this much beyond the later cut. */
export const LONGEST_MATCH = PIECE_CHARS * FORM_CHARS;
/**
 * Pieces of one secret that are looked for in all forms. Further pieces are looked for only as they are written: a
 * piece takes some milliseconds to prepare, and a longer secret is a file of which texts show the beginning.
 */
const ENCODED_PIECES = 16;
/** A shorter form would be found by chance, so it is looked for as a whole word. */
const SURE_CHARS = 8;

const anyCase = (hex: string): string =>
  hex.replace(/[a-f]/gi, (digit) => `[${digit.toLowerCase()}${digit.toUpperCase()}]`);

const HTML: Readonly<Record<string, string>> = {
  "&": "amp",
  "<": "lt",
  ">": "gt",
  '"': "quot",
  "'": "apos",
  "/": "sol",
};
/** Letters that JSON writes for control characters. */
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  "\b": "b",
  "\f": "f",
  "\n": "n",
  "\r": "r",
  "\t": "t",
};
/** JSON within JSON doubles the backslash. */
const BACKSLASHES = "\\\\{1,3}";

/** One character in each form that a URL, JSON or HTML gives it. Letters and digits have one form. */
function spellings(char: string): string {
  if (/^[A-Za-z0-9_.~-]$/.test(char)) return escapePattern(char);
  const ways = [char === '"' || char === "/" ? `\\\\{0,3}${char}` : escapePattern(char)];
  if (char === "\\") ways.unshift("\\\\{2,4}");
  if (char === " ") ways.push("\\+");
  const bytes = Buffer.from(char).toString("hex");
  ways.push(bytes.replace(/../g, (byte) => `%${anyCase(byte)}`));
  const units = Array.from({ length: char.length }, (_, i) =>
    char.charCodeAt(i).toString(16).padStart(4, "0"),
  );
  ways.push(units.map((unit) => `${BACKSLASHES}u${anyCase(unit)}`).join(""));
  const short = SHORT_ESCAPES[char];
  if (short !== undefined) ways.push(`${BACKSLASHES}${short}`);
  const entity = HTML[char];
  if (entity !== undefined) ways.push(`&(?:${entity}|#0?${char.charCodeAt(0)}|#[xX]${anyCase(bytes)});`);
  return `(?:${ways.join("|")})`;
}

/** Pieces of nearly equal size: a short rest would be too short to be found. */
function pieces(secret: string): string[] {
  const count = Math.ceil(secret.length / PIECE_CHARS);
  const size = Math.ceil(secret.length / count);
  return Array.from({ length: count }, (_, i) => secret.slice(i * size, (i + 1) * size));
}

/**
 * Base64 of the bytes for each position in a longer text: three bytes make four characters, so there are three forms.
 * Characters that also depend on neighbouring bytes are left out: they hold less than a byte of the secret.
 */
function base64Forms(bytes: Buffer): string[] {
  const whole = bytes.toString("base64");
  const inner = [0, 2, 3].map((skipped, offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    return shifted.toString("base64").slice(skipped, Math.floor((shifted.length * 8) / 6));
  });
  const sure = inner.filter((form) => form.length >= SURE_CHARS);
  return [whole, whole.replace(/=+$/, ""), ...sure].flatMap((form) => [
    form,
    form.replaceAll("+", "-").replaceAll("/", "_"),
  ]);
}

/** `source` as a part of any text, or as a whole word if `form` is too short for that. */
const within = (form: string, source: string): string =>
  form.length >= SURE_CHARS ? source : `(?<![A-Za-z0-9])${source}(?![A-Za-z0-9])`;

/**
 * Sources of regular expressions, the longest form first, because one secret may begin with another. `parts` of secrets
 * are looked for as they are written, not encoded, because there may be thousands.
 */
function formsOf(secrets: readonly string[], parts: readonly string[]): string[] {
  const forms = new Map<string, string>();
  for (const piece of secrets.flatMap((secret) => pieces(secret).slice(0, ENCODED_PIECES))) {
    const bytes = Buffer.from(piece);
    const hex = bytes.toString("hex");
    for (const form of [hex, hex.toUpperCase(), ...base64Forms(bytes)])
      forms.set(form, within(form, escapePattern(form)));
  }
  for (const secret of [...secrets, ...parts]) {
    for (const [i, piece] of pieces(secret).entries()) {
      const source = i < ENCODED_PIECES ? Array.from(piece, spellings).join("") : escapePattern(piece);
      forms.set(piece, within(piece, source));
    }
  }
  return [...forms].toSorted(([a], [b]) => b.length - a.length).map(([, source]) => source);
}

export type Redactor = (text: string) => string;

const MARK = "[redacted]";
/** Shorter values, such as `1` or `true`, are not secrets, and to hide them would hide half of a text. */
const SECRET_CHARS = SURE_CHARS;
/** Least length of a value whose name says that it is secret. Below `SECRET_CHARS` it is looked for as a whole word. */
const NAMED_SECRET_CHARS = 4;
/** Neither are words that everybody has, the password of a database on a developer's machine among them: addresses hold them. */
const NO_SECRET =
  /^(true|false|null|none|auto|required|optional|disabled|localhost|development|production|password|postgres|root|admin|guest|user|test|mysql|redis|mongo)$/i;

/** Values that no text may show. */
export interface Secrets {
  /** All values of a definition that may be secret. */
  values: readonly string[];
  /** Values that are certainly secret, because their name says so. */
  named: readonly string[];
}

export const NO_SECRETS: Secrets = { values: [], named: [] };

/** A value with more words is a text, not a scheme and its key. */
const WORDS_OF_KEY = 4;
/** Limit for words and lines of one secret that are looked for separately. */
const MOST_PARTS = 1_000;

const wordsOf = (secret: string): string[] => secret.trim().split(/\s+/, MOST_PARTS).slice(1);

/** In `Bearer abc` the second word alone is secret, too. */
const keysOf = (secret: string): string[] => {
  const words = wordsOf(secret);
  return [secret, secret.trim(), ...(words.length < WORDS_OF_KEY ? words : [])];
};

/** Words and lines of a text such as a key file, which programs print line by line. */
const partsOf = (secret: string): string[] => [
  ...wordsOf(secret),
  ...secret.split(/[\r\n]+/, MOST_PARTS).map((line) => line.trim()),
];

const longEnough =
  (chars: number) =>
  (secret: string): boolean =>
    secret.length >= chars && !NO_SECRET.test(secret);

/** Credentials (RFC 9110, section 11.4) of anybody. */
const CREDENTIALS = /\b(basic|bearer)(\s{1,8}|%20)([\w.~+/-]{4,}={0,2})/gi;
/** Words for people and names of parameters: `Bearer token`, `Basic auth required`, `Bearer resource_metadata=...`. */
const PLAIN_WORD = /^(?:[A-Z]?[a-z_-]{1,19}|[A-Z_-]{1,19})[.~+/-]*=?$/;

const withoutCredentials = (text: string): string =>
  text.replace(CREDENTIALS, (found: string, scheme: string, space: string, word: string) =>
    PLAIN_WORD.test(word) ? found : `${scheme}${space}${MARK}`,
  );

/** Replaces each of the secrets. The time is linear in the text, whatever the number of secrets. */
export function createRedactor({ values, named }: Secrets): Redactor {
  const all = (of: (secret: string) => string[]): string[] => [
    ...new Set([
      ...values.flatMap(of).filter(longEnough(SECRET_CHARS)),
      ...named.flatMap(of).filter(longEnough(NAMED_SECRET_CHARS)),
    ]),
  ];
  const forms = formsOf(all(keysOf), all(partsOf));
  if (forms.length === 0) return withoutCredentials;
  const expression = new RegExp(forms.join("|"), "g");
  return (text) => withoutCredentials(text.replace(expression, MARK));
}

/**
 * Takes secrets out of the text, then cuts it: neither half of a secret that is cut in two would be found. A longer
 * text costs no more: only the part that may be shown is searched, and the length of the longest secret beyond it.
 * `whole`: the text's length if only its beginning is known here.
 */
export function boundText(text: string, chars: number, redact: Redactor, whole = text.length): string {
  const most = chars + LONGEST_MATCH;
  const shown = redact(text.slice(0, most));
  if (text.length <= most && shown.length <= chars) return shown.toWellFormed();
  const length = shown.length + Math.max(0, whole - most);
  // Half of a secret may stand at the end of the part that was searched.
  const sure = text.length <= most ? shown : shown.slice(0, -LONGEST_MATCH);
  return `${sure.slice(0, chars).toWellFormed()}… (${length.toLocaleString("en")} characters)`;
}

/** The end of a text, without secrets. `isCut`: the text lacks its beginning, so half of a secret may come first. */
export function boundEnd(
  text: string,
  chars: number,
  { isCut, redact }: { isCut: boolean; redact: Redactor },
): string {
  if (!isCut) return redact(text).slice(-chars);
  const line = text.slice(0, LONGEST_MATCH).indexOf("\n") + 1;
  return (line > 0 ? redact(text.slice(line)) : redact(text).slice(LONGEST_MATCH)).slice(-chars);
}

/** Takes secrets out of every text in the value. */
export function redactValue(value: JsonValue, redact: Redactor): JsonValue {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redact));
  return typeof value === "object" && value !== null ? redactData(value, redact) : value;
}

/** Takes secrets out of every text in the data of an error. In its JSON a secret such as `9000` could be a number. */
export const redactData = (data: ErrorData, redact: Redactor): ErrorData =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [redact(key), redactValue(value, redact)]));

/** More than the longest message of this package, which ends with the last part of a server's stderr. */
const MESSAGE_CHARS = 4 * LIMITS.stderrTailBytes;

/** The same error without secrets, short enough to be shown. Its data must be bounded already. */
export function redactError(error: unknown, redact: Redactor): unknown {
  if (!(error instanceof ThreadsError)) return error;
  return new ThreadsError(error.code, boundText(error.message, MESSAGE_CHARS, redact), {
    remedy: error.remedy && redact(error.remedy),
    data: error.data && redactData(error.data, redact),
    cause: error.cause,
  });
}
