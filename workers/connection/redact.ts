/**
 * Keeps secrets out of every text that leaves the worker: header values, environment values and tokens,
 * also as they look inside a URL, JSON or base64. Pure.
 */
import { type ErrorData, type JsonValue, ThreadsError } from "../../src/protocol/errors.ts";
import { LIMITS } from "../../src/protocol/limits.ts";

export type Redactor = (text: string) => string;

const MARK = "[redacted]";
/** Shorter values, such as `1` or `true`, are no secrets and would blot out half a text. */
const SECRET_CHARS = 8;
/** Of a value whose name says that it is a secret; below `SECRET_CHARS` it is looked for as a whole word. */
const NAMED_SECRET_CHARS = 4;
const NO_SECRET = /^(true|false|null|none|auto)$/i;

/** What no text may show. */
export interface Secrets {
  /** Whatever a definition holds that may be secret. */
  values: readonly string[];
  /** What is secret for sure, by the name that it goes with. */
  named: readonly string[];
}

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** `Bearer abc` is secret in its second word alone, too. */
const partsOf = (secret: string): string[] => [secret, secret.trim(), ...secret.trim().split(/\s+/).slice(1)];

const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret.toWellFormed()),
  JSON.stringify(secret).slice(1, -1),
  Buffer.from(secret).toString("base64"),
];

const patternOf = (form: string): string =>
  form.length >= SECRET_CHARS ? escapeRegExp(form) : `(?<![A-Za-z0-9])${escapeRegExp(form)}(?![A-Za-z0-9])`;

const longEnough =
  (chars: number) =>
  (secret: string): boolean =>
    secret.length >= chars && !NO_SECRET.test(secret);

/** Replaces each of the secrets. Linear in the text, whatever the number of secrets. */
export function createRedactor({ values, named }: Secrets): Redactor {
  const secrets = [
    ...values.flatMap(partsOf).filter(longEnough(SECRET_CHARS)),
    ...named.flatMap(partsOf).filter(longEnough(NAMED_SECRET_CHARS)),
  ];
  const forms = [...new Set(secrets.flatMap(formsOf))];
  if (forms.length === 0) return (text) => text;
  // The longest first: one secret may begin with another.
  const pattern = forms
    .toSorted((a, b) => b.length - a.length)
    .map(patternOf)
    .join("|");
  const expression = new RegExp(pattern, "g");
  return (text) => text.replace(expression, MARK);
}

/** The text without secrets, then cut: of a secret cut in two, neither half would be found. */
export function boundText(text: string, chars: number, redact: Redactor): string {
  const shown = redact(text);
  if (shown.length <= chars) return shown.toWellFormed();
  return `${shown.slice(0, chars).toWellFormed()}… (${shown.length.toLocaleString("en")} characters)`;
}

/** Every text in it. */
export function redactValue(value: JsonValue, redact: Redactor): JsonValue {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redact));
  return typeof value === "object" && value !== null ? redactData(value, redact) : value;
}

const redactData = (data: ErrorData, redact: Redactor): ErrorData =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [redact(key), redactValue(value, redact)]));

/** More than the longest of our own messages, which end with what a server wrote to stderr. */
const MESSAGE_CHARS = 4 * LIMITS.stderrTailBytes;

/** The same error without secrets, and of a length that can be shown. Its data must be bounded already. */
export function redactError(error: unknown, redact: Redactor): unknown {
  if (!(error instanceof ThreadsError)) return error;
  return new ThreadsError(error.code, boundText(error.message, MESSAGE_CHARS, redact), {
    remedy: error.remedy && redact(error.remedy),
    data: error.data && redactData(error.data, redact),
    cause: error.cause,
  });
}
