/**
 * Judges the value of one field of a server's question (MCP 2025-11-25, client/elicitation), and makes its choices different texts.
 * Main asks again at once, and the worker judges once more before it answers the server. Pure.
 */
import type { Field, FieldValue, TextFormat } from "../protocol/calls.ts";
import type { JsonValue } from "../protocol/errors.ts";
import { counted } from "../text/amounts.ts";
import { isExact, parseArguments } from "../text/reading.ts";

/** Texts of which no two are equal: the answer of a dialog is a text. */
export function numbered(texts: readonly string[]): string[] {
  const taken = new Set<string>();
  return texts.map((text) => {
    let free = text;
    for (let count = 2; taken.has(free); count++) free = `${text} (${count})`;
    taken.add(free);
    return free;
  });
}

/** Longest text of one field. A pasted page is longer, and no form needs it. */
export const VALUE_CHARS = 10_000;

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
const EMAIL = /^[^\s@"(),:;<>[\]\\]{1,64}@(?:[\p{L}\p{N}-]{1,63}\.){1,20}[\p{L}\p{N}-]{2,63}$/u;
/** The scheme decides what follows; only an address of the web must have a host. */
const URI = /^(?:https?:\/\/[^\s/?#<>"]|(?!https?:)[a-z][a-z0-9+.-]*:[^\s<>"])[^\s<>"]*$/i;
const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const DATE_TIME =
  /^(\d{4}-\d\d-\d\d)[Tt ]([01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** The number that the text stands for. */
export function numberOf(text: string): number | undefined {
  const trimmed = text.trim();
  if (!NUMBER.test(trimmed)) return undefined;
  const number = Number(trimmed);
  return Number.isFinite(number) ? number : undefined;
}

function isDate(text: string): boolean {
  const [, year = "", month = "", day = ""] = DATE.exec(text) ?? [];
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day)));
  // The Date of a day that does not exist is another day.
  return year !== "" && date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day);
}

/** The value of a JSON text; undefined: it is none, or has a number that would be sent as another one. */
export function jsonOf(text: string): JsonValue | undefined {
  try {
    return parseArguments(text) as JsonValue;
  } catch {
    return undefined;
  }
}

const FORMATS: Record<TextFormat, { fits: (text: string) => boolean; problem: string }> = {
  email: {
    fits: (text) => EMAIL.test(text),
    problem: "An email address is needed, for example ann@example.com.",
  },
  uri: {
    fits: (text) => URI.test(text),
    problem: "A whole address is needed, for example https://example.com.",
  },
  date: { fits: isDate, problem: "A date is needed, for example 2026-11-22." },
  "date-time": {
    fits: (text) => isDate(DATE_TIME.exec(text)?.[1] ?? ""),
    problem: "A date and a time with its zone are needed, for example 2026-11-22T09:30:00Z.",
  },
  json: {
    fits: (text) => jsonOf(text) !== undefined,
    problem:
      'JSON is needed, for example ["a", "b"] or {"key": 1}; a number of more than 15 digits as a text.',
  },
};

type Of<K extends Field["kind"]> = Extract<Field, { kind: K }>;

function problemOfText({ format, minLength = 0, maxLength }: Of<"text">, text: string): string | undefined {
  const most = Math.min(maxLength ?? VALUE_CHARS, VALUE_CHARS);
  // The number of UTF-16 units is never less than the number of characters, which JSON Schema counts.
  const length = text.length > 2 * VALUE_CHARS ? text.length : [...text].length;
  if (length > most) return `At most ${counted(most, "character")} fit, and these are ${length}.`;
  if (length < minLength) return `At least ${counted(minLength, "character")} are needed.`;
  if (format === undefined || FORMATS[format].fits(text)) return undefined;
  return FORMATS[format].problem;
}

function problemOfNumber({ integer, minimum, maximum }: Of<"number">, text: string): string | undefined {
  const number = numberOf(text);
  if (number === undefined) return "A number is needed.";
  if (integer && !Number.isInteger(number)) return "A whole number is needed.";
  if (!isExact(text.trim()))
    return `The server would get ${number} in its place: this number has too many digits.`;
  if (minimum !== undefined && number < minimum) return `At least ${minimum} is needed.`;
  if (maximum !== undefined && number > maximum) return `At most ${maximum} is possible.`;
  return undefined;
}

const isChoice = (choices: readonly unknown[], value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value < choices.length;

function problemOfChoices(field: Of<"choices">, value: readonly number[]): string | undefined {
  const { choices, minItems = 0, maxItems } = field;
  if (!value.every((one) => isChoice(choices, one)) || new Set(value).size < value.length)
    return "Choose from the list.";
  if (value.length < minItems) return `Choose at least ${minItems}.`;
  return maxItems !== undefined && value.length > maxItems ? `Choose at most ${maxItems}.` : undefined;
}

/** What is wrong with the value, in one sentence; undefined if it fits. */
export function problemOf(field: Field, value: FieldValue): string | undefined {
  if (value === undefined) return field.required ? "An answer is needed." : undefined;
  switch (field.kind) {
    case "text":
      return typeof value === "string" ? problemOfText(field, value) : "A text is needed.";
    case "number":
      return typeof value === "string" ? problemOfNumber(field, value) : "A number is needed.";
    case "boolean":
      return typeof value === "boolean" ? undefined : "Choose yes or no.";
    case "choice":
      return isChoice(field.choices, value) ? undefined : "Choose from the list.";
    case "choices":
      return Array.isArray(value) ? problemOfChoices(field, value) : "Choose from the list.";
  }
}

/** The value that holds before the user has given one. */
export const startValue = (field: Field): FieldValue =>
  field.kind === "number" && field.default !== undefined ? String(field.default) : field.default;
