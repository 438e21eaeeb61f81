/** Owns: which values of a field of a server's question fit. */
import { expect, test } from "vitest";
import { numberOf, problemOf, VALUE_CHARS } from "../../../../src/shared/asks/check.ts";
import type { Field, FieldKind, FieldValue } from "../../../../src/shared/protocol/calls.ts";

const field = (kind: FieldKind, required = false): Field => ({ ...kind, title: "T", required });
const text = (more: object = {}): Field => field({ kind: "text", ...more } as FieldKind);
const number = (more: object = {}): Field => field({ kind: "number", integer: false, ...more } as FieldKind);
const choices = [{ title: "a" }, { title: "b" }, { title: "c" }];
const several = (more: object = {}): Field => field({ kind: "choices", choices, ...more } as FieldKind);

const FITS = undefined;
const EMAIL = "An email address is needed, for example ann@example.com.";
const URI = "A whole address is needed, for example https://example.com.";
const DATE = "A date is needed, for example 2026-11-22.";
const JSON_TEXT =
  'JSON is needed, for example ["a", "b"] or {"key": 1}; a number of more than 15 digits as a text.';
const TIME = "A date and a time with its zone are needed, for example 2026-11-22T09:30:00Z.";

test.each<[Field, FieldValue, string | undefined]>([
  [text(), undefined, FITS],
  [field({ kind: "text" }, true), undefined, "An answer is needed."],
  [text(), "", FITS],
  [text(), 5, "A text is needed."],
  [text({ minLength: 2 }), "a", "At least 2 characters are needed."],
  [text({ minLength: 2 }), "😀😀", FITS],
  [text({ maxLength: 2 }), "😀😀", FITS],
  [text({ maxLength: 2 }), "abc", "At most 2 characters fit, and these are 3."],
  [text(), "x".repeat(VALUE_CHARS + 1), "At most 10000 characters fit, and these are 10001."],
  [
    text({ maxLength: 1e9 }),
    "x".repeat(VALUE_CHARS * 3),
    "At most 10000 characters fit, and these are 30000.",
  ],
  [text({ format: "email" }), "ann@example.com", FITS],
  [text({ format: "email" }), "ann@exämple.com", FITS],
  [text({ format: "email" }), "ann", EMAIL],
  [text({ format: "email" }), "ann@localhost", EMAIL],
  [text({ format: "email" }), "a b@example.com", EMAIL],
  [text({ format: "json" }), '{"id": 123}', FITS],
  [text({ format: "json" }), '{"id": 12345678901234567890}', JSON_TEXT],
  [text({ format: "json" }), "{id", JSON_TEXT],
  [text({ format: "uri" }), "https://example.com/a", FITS],
  [text({ format: "uri" }), "urn:isbn:0451450523", FITS],
  [text({ format: "uri" }), "example.com", URI],
  [text({ format: "uri" }), "https:", URI],
  [text({ format: "uri" }), "https:///a", URI],
  [text({ format: "uri" }), "https://a b", URI],
  [text({ format: "date" }), "2024-02-29", FITS],
  [text({ format: "date" }), "2023-02-29", DATE],
  [text({ format: "date" }), "22.11.2026", DATE],
  [text({ format: "date-time" }), "2026-11-22T09:30:00Z", FITS],
  [text({ format: "date-time" }), "2026-11-22T09:30:00.25+01:00", FITS],
  [text({ format: "date-time" }), "2026-11-22T09:30:00", TIME],
  [text({ format: "date-time" }), "2026-11-22T24:30:00Z", TIME],
  [text({ format: "date-time" }), "2026-02-30T09:30:00Z", TIME],
  [number(), "3.14", FITS],
  [number(), " -1e3 ", FITS],
  [number(), "", "A number is needed."],
  [number(), "1,5", "A number is needed."],
  [number(), "0x10", "A number is needed."],
  [number(), "1e999", "A number is needed."],
  [number(), 5, "A number is needed."],
  [number({ integer: true }), "1e3", FITS],
  [number({ integer: true }), "1.5", "A whole number is needed."],
  ...[{ integer: true }, {}].map((more): [Field, FieldValue, string] => [
    number(more),
    "9007199254740993",
    "The server would get 9007199254740992 in its place: this number has too many digits.",
  ]),
  [number({ minimum: 1 }), "0", "At least 1 is needed."],
  [number({ maximum: 1 }), "2", "At most 1 is possible."],
  [field({ kind: "boolean" }), false, FITS],
  [field({ kind: "boolean" }), "true", "Choose yes or no."],
  [field({ kind: "choice", choices }), 2, FITS],
  [field({ kind: "choice", choices }), 3, "Choose from the list."],
  [field({ kind: "choice", choices }), -1, "Choose from the list."],
  [field({ kind: "choice", choices }), "a", "Choose from the list."],
  [several(), [], FITS],
  [several(), [0, 2], FITS],
  [several(), [0, 0], "Choose from the list."],
  [several(), [0, 3], "Choose from the list."],
  [several(), 0, "Choose from the list."],
  [several({ minItems: 2 }), [0], "Choose at least 2."],
  [several({ maxItems: 1 }), [0, 1], "Choose at most 1."],
])("%j with %j -> %j", (one, value, problem) => {
  expect(problemOf(one, value)).toBe(problem);
});

test.each([
  ["1", 1],
  ["+.5", 0.5],
  ["5.", 5],
  ["-0.5e-1", -0.05],
  ["Infinity", undefined],
  ["1 2", undefined],
  [".", undefined],
])("the number of %j -> %j", (written, number) => {
  expect(numberOf(written)).toBe(number);
});
