/**
 * Reads the input schema of a tool as a form that a person fills in to try the tool. What the forms of questions have is
 * asked in their way; an argument of any other kind is typed as JSON. The schema may have any shape. Pure.
 */
import { VALUE_CHARS } from "../../../src/shared/asks/check.ts";
import type { Field, FieldKind, ToolField, ToolForm } from "../../../src/shared/protocol/calls.ts";
import type { JsonValue } from "../../../src/shared/protocol/errors.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { known } from "../../shared/json.ts";
import type { Redactor } from "../secrets/redact.ts";
import { CHOICE_CHARS, CHOICES, DESCRIPTION_CHARS, FIELDS, TITLE_CHARS } from "./limits.ts";
import { type Kind, kindOf, lineOf, type Schema } from "./read.ts";

/** The one alternative beside `null`, as generators write an optional argument; else the schema itself. */
function withoutNull(schema: Schema): Schema {
  const either = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(either)) return schema;
  const [only, second] = either.filter((one) => isObject(one) && one.type !== "null") as Schema[];
  if (!only || second || Object.hasOwn(only, "const")) return schema;
  const { anyOf: _any, oneOf: _one, ...around } = schema;
  return { ...only, ...around };
}

/** A list of values that are not all texts. */
function listedKind(schema: Schema, redact: Redactor): { kind: FieldKind; values: JsonValue[] } | undefined {
  const { enum: values } = schema;
  if (!Array.isArray(values) || values.length === 0 || values.length > CHOICES) return undefined;
  const texts = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  if (texts.some((text) => text.length > VALUE_CHARS)) return undefined;
  const choices = texts.map((text, at) => ({
    title: lineOf(text, CHOICE_CHARS, redact) ?? `choice ${at + 1}`,
  }));
  const position = values.indexOf(schema.default);
  const kind: FieldKind = { kind: "choice", choices, ...(position < 0 ? {} : { default: position }) };
  return { kind, values: values as JsonValue[] };
}

const asJson = ({ default: start }: Schema): { kind: FieldKind; values: JsonValue[] } => {
  const text = start === undefined ? undefined : JSON.stringify(start);
  const isShort = text !== undefined && text.length <= VALUE_CHARS;
  return { kind: { kind: "text", format: "json", ...(isShort ? { default: text } : {}) }, values: [] };
};

function read(schema: Schema, redact: Redactor): { kind: FieldKind; values: readonly JsonValue[] } {
  const kind: Kind | { problem: string } = kindOf(schema, redact);
  return "problem" in kind ? (listedKind(schema, redact) ?? asJson(schema)) : kind;
}

/** Those that must be given come first. */
export function toolForm(schema: unknown, redact: Redactor): ToolForm {
  const { properties, required } = isObject(schema) ? schema : {};
  const needed = new Set(Array.isArray(required) ? required : []);
  const all = isObject(properties) ? Object.entries(properties) : [];
  const usable = all.filter(([name]) => name !== "__proto__" && name !== "" && name.length <= VALUE_CHARS);
  const ordered = [
    ...usable.filter(([name]) => needed.has(name)),
    ...usable.filter(([name]) => !needed.has(name)),
  ];
  const fields = ordered.slice(0, FIELDS).map(([name, given], at): ToolField => {
    const property = withoutNull(isObject(given) ? given : {});
    const { kind, values } = read(property, redact);
    const title = lineOf(name, TITLE_CHARS, redact) ?? `argument ${at + 1}`;
    const says =
      lineOf(property.description, DESCRIPTION_CHARS, redact) ??
      lineOf(property.title, DESCRIPTION_CHARS, redact);
    const description = says === title ? undefined : says;
    const field = { ...kind, ...known({ title, description, required: needed.has(name) }) } as Field;
    return { name, field, values: [...values] };
  });
  return { fields, left: all.length - fields.length };
}
