/**
 * Keeps secrets out of every text that leaves the worker: header values, environment values and tokens,
 * also as they look inside a URL, JSON or base64. Pure.
 */
import { type ErrorData, type JsonValue, ThreadsError } from "../../src/protocol/errors.ts";
import type { ServerDefinition } from "./config/definition.ts";

export type Redactor = (text: string) => string;

const MARK = "[redacted]";
/** Shorter values, such as `1` or `true`, are no secrets and would blot out half a text. */
const SECRET_CHARS = 8;

const escapeRegExp = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** `Bearer abc` is secret in its second word alone, too. */
const partsOf = (secret: string): string[] => [secret, secret.trim(), ...secret.trim().split(/\s+/).slice(1)];

const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret.toWellFormed()),
  JSON.stringify(secret).slice(1, -1),
  Buffer.from(secret).toString("base64"),
];

/** Replaces each of the secrets. Linear in the text, whatever the number of secrets. */
export function createRedactor(secrets: Iterable<string>): Redactor {
  const long = [...secrets].flatMap(partsOf).filter((secret) => secret.length >= SECRET_CHARS);
  const forms = [...new Set(long.flatMap(formsOf))];
  if (forms.length === 0) return (text) => text;
  // The longest first: one secret may begin with another.
  const pattern = forms
    .toSorted((a, b) => b.length - a.length)
    .map(escapeRegExp)
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

type Target = ServerDefinition["target"];

const HOLDS_VARIABLE = /\$\{|\$env:|\{env:|^!/;

/** What variables or a command put into a text: the part that differs from what was written. */
function substituted(written: string, resolved: string): string[] {
  if (!HOLDS_VARIABLE.test(written) || written === resolved) return [];
  let start = 0;
  while (start < written.length && written[start] === resolved[start]) start++;
  let end = 0;
  const most = Math.min(written.length, resolved.length) - start;
  while (end < most && written.at(-1 - end) === resolved.at(-1 - end)) end++;
  return [resolved.slice(start, resolved.length - end)];
}

/** What a URL tells the server alone: its query and userinfo, as written and as meant. */
function secretParts(url: string): string[] {
  const parsed = URL.parse(url);
  if (!parsed) return [];
  const { search, searchParams, username, password } = parsed;
  const written = [search.slice(1), username, password];
  return [...written, ...written.map(decoded), ...searchParams.values()].filter((part) => part !== "");
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** What a definition holds that no text may show, from how it is written and what that resolved to. */
export function secretsOf(written: Target, resolved: Target): string[] {
  if (resolved.kind === "http") {
    const url = written.kind === "http" ? substituted(written.url, resolved.url) : [];
    return [...Object.values(resolved.headers), ...url, ...secretParts(resolved.url)];
  }
  if (written.kind !== "stdio") return Object.values(resolved.env);
  const texts = [
    [written.command, resolved.command],
    [written.cwd ?? "", resolved.cwd ?? ""],
    ...written.args.map((arg, i) => [arg, resolved.args[i] ?? ""]),
  ];
  return [...Object.values(resolved.env), ...texts.flatMap(([from = "", to = ""]) => substituted(from, to))];
}

/** Every text in it. */
export function redactValue(value: JsonValue, redact: Redactor): JsonValue {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((item) => redactValue(item, redact));
  return typeof value === "object" && value !== null ? redactData(value, redact) : value;
}

const redactData = (data: ErrorData, redact: Redactor): ErrorData =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [redact(key), redactValue(value, redact)]));

/** The same error without secrets. Its data must be bounded already. */
export function redactError(error: unknown, redact: Redactor): unknown {
  if (!(error instanceof ThreadsError)) return error;
  return new ThreadsError(error.code, redact(error.message), {
    remedy: error.remedy && redact(error.remedy),
    data: error.data && redactData(error.data, redact),
    cause: error.cause,
  });
}
