/**
 * Keeps secrets out of every text that leaves the worker: header values, environment values and tokens in each form of
 * forms.ts, and all credentials after `Basic` or `Bearer`. Pure.
 */
import { type ErrorData, type JsonValue, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { formsOf, LONGEST_MATCH, SURE_CHARS } from "./forms.ts";

export type Redactor = (text: string) => string;

const MARK = "[redacted]";
/** Shorter values, such as `1` or `true`, are not secrets, and to hide them would hide half of a text. */
const SECRET_CHARS = SURE_CHARS;
/** Least length of a value whose name says that it is secret. Below `SECRET_CHARS` it is looked for as a whole word. */
const NAMED_SECRET_CHARS = 4;
const NO_SECRET = /^(true|false|null|none|auto)$/i;

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
