/**
 * Reads what a server asks the user (MCP 2025-11-25, client/elicitation): a form, or an address to open. The request may
 * have any shape. Pure.
 */

import { numberOf, problemOf, VALUE_CHARS } from "../../../src/shared/asks/check.ts";
import type {
  Ask,
  Choice,
  Field,
  FieldKind,
  FieldValue,
  TextFormat,
} from "../../../src/shared/protocol/calls.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { cleanText, cut, oneLine } from "../../../src/shared/text/unprintable.ts";
import { known } from "../../shared/json.ts";
import { boundText, type Redactor } from "../secrets/redact.ts";
import {
  CHOICE_CHARS,
  CHOICES,
  DEFAULT_CHARS,
  DESCRIPTION_CHARS,
  FIELDS,
  MESSAGE_CHARS,
  MESSAGE_LINES,
  TITLE_CHARS,
  URL_CHARS,
} from "./limits.ts";

/** A field with what the answer to the server needs of it. */
interface ServerField {
  /** The field as main sees it. */
  field: Field;
  /** The name of the property. */
  name: string;
  /** The server's values of the choices, by position. */
  values: readonly string[];
  enumNames?: boolean;
}

/** Why the form is not asked, worded to follow `: `. */
interface Unanswerable {
  problem: string;
}

export type Schema = Record<string, unknown>;

const FORMATS: readonly string[] = ["email", "uri", "date", "date-time"] satisfies TextFormat[];

/** One line of the server's words. */
export const lineOf = (text: unknown, chars: number, redact: Redactor): string | undefined => {
  if (typeof text !== "string") return undefined;
  return oneLine(boundText(text, 4 * chars, redact), chars) || undefined;
};

const isPlain = (text: string): boolean => oneLine(text, VALUE_CHARS) === text;

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 ? value : undefined;

const number = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

/** `string` of `["string", "null"]`. */
const typeOf = ({ type }: Schema): unknown =>
  Array.isArray(type) ? type.find((one) => one !== "null") : type;

interface Listed {
  choices: Choice[];
  values: string[];
}

/** The choices of `enum`, `oneOf` or `anyOf`. Undefined: the schema lists none. `problem`: they cannot be asked. */
function listedIn(schema: Schema, redact: Redactor): Listed | Unanswerable | undefined {
  const titled = schema.oneOf ?? schema.anyOf;
  const source = schema.enum ?? titled;
  if (source === undefined) return undefined;
  if (!Array.isArray(source) || source.length === 0) return { problem: "has a list without choices" };
  if (source.length > CHOICES) return { problem: `has more than ${CHOICES} choices` };
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
  const listed: Listed = { choices: [], values: [] };
  for (const [index, item] of source.entries()) {
    const value: unknown = schema.enum === undefined && isObject(item) ? item.const : item;
    if (typeof value !== "string" || value.length > VALUE_CHARS)
      return { problem: "has a choice that is not a text" };
    if (listed.values.includes(value)) continue;
    const title = schema.enum === undefined && isObject(item) ? item.title : names[index];
    listed.values.push(value);
    listed.choices.push({
      title:
        lineOf(title, CHOICE_CHARS, redact) ?? lineOf(value, CHOICE_CHARS, redact) ?? `choice ${index + 1}`,
    });
  }
  return listed;
}

/** A default that the user could not read in the dialog is no default: nobody would know what is sent. */
function defaultText(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "" || value.length > DEFAULT_CHARS) return undefined;
  return cleanText(value) === value ? value : undefined;
}

export type Kind = { kind: FieldKind; values: readonly string[] };

/** A kind without choices. Its limits may be undefined. */
const plain = (kind: object): Kind => ({ kind: known(kind) as FieldKind, values: [] });

function textKind(schema: Schema): Kind {
  const format = FORMATS.includes(String(schema.format)) ? (schema.format as TextFormat) : undefined;
  const [minLength, maxLength] = [count(schema.minLength), count(schema.maxLength)];
  return plain({ kind: "text", format, minLength, maxLength, default: defaultText(schema.default) });
}

function numberKind(schema: Schema, integer: boolean): Kind {
  const [minimum, maximum] = [number(schema.minimum), number(schema.maximum)];
  const start = number(schema.default);
  // Parsing has perhaps changed such a default, and the answer would send back another number.
  const isSure = start === undefined || !Number.isInteger(start) || Number.isSafeInteger(start);
  return plain({ kind: "number", integer, minimum, maximum, default: isSure ? start : undefined });
}

function choiceKind({ choices, values }: Listed, wanted: unknown): Kind {
  const position = typeof wanted === "string" ? values.indexOf(wanted) : -1;
  return { kind: { kind: "choice", choices, ...(position < 0 ? {} : { default: position }) }, values };
}

function choicesKind({ choices, values }: Listed, schema: Schema): Kind {
  const wanted = Array.isArray(schema.default) ? schema.default.slice(0, CHOICES) : undefined;
  const positions = wanted?.map((value) => values.indexOf(value)).filter((position) => position >= 0);
  const kind = known({
    kind: "choices",
    choices,
    minItems: count(schema.minItems),
    maxItems: count(schema.maxItems),
    default: positions && [...new Set(positions)],
  });
  return { kind: kind as FieldKind, values };
}

export function kindOf(schema: Schema, redact: Redactor): Kind | Unanswerable {
  const type = typeOf(schema);
  if (type === "array") {
    const listed = isObject(schema.items) ? listedIn(schema.items, redact) : undefined;
    if (listed === undefined) return { problem: "is a list without choices" };
    return "problem" in listed ? listed : choicesKind(listed, schema);
  }
  if (type === "boolean") {
    const { default: start } = schema;
    return plain({ kind: "boolean", default: typeof start === "boolean" ? start : undefined });
  }
  if (type === "number" || type === "integer") return numberKind(schema, type === "integer");
  const listed = type === undefined || type === "string" ? listedIn(schema, redact) : undefined;
  if (listed !== undefined) return "problem" in listed ? listed : choiceKind(listed, schema.default);
  return type === "string" ? textKind(schema) : { problem: "is of a kind that forms do not have" };
}

/** Reads `requestedSchema`, which may have any shape. */
function readFields(schema: unknown, redact: Redactor): ServerField[] | Unanswerable {
  if (schema === undefined || schema === null) return [];
  if (!isObject(schema)) return { problem: "its form is not an object" };
  const { properties = {}, required } = schema;
  if (!isObject(properties)) return { problem: "the fields of its form are not an object" };
  const names = Object.keys(properties);
  if (names.length > FIELDS) {
    return {
      problem: `its form has ${names.length.toLocaleString("en")} fields, and at most ${FIELDS} are asked`,
    };
  }
  const needed = new Set(Array.isArray(required) ? required : []);
  const fields: ServerField[] = [];
  for (const [index, name] of names.entries()) {
    const property = properties[name];
    const shown = lineOf(name, TITLE_CHARS, redact) ?? `field ${index + 1}`;
    if (name === "__proto__" || !isObject(property))
      return { problem: `its field ${shown} is not an object` };
    const read = kindOf(property, redact);
    if ("problem" in read) return { problem: `its field ${shown} ${read.problem}` };
    const title = lineOf(property.title, TITLE_CHARS, redact) ?? shown;
    const says = lineOf(property.description, DESCRIPTION_CHARS, redact);
    const description = says === title ? undefined : says;
    const field = { ...read.kind, ...known({ title, description, required: needed.has(name) }) } as Field;
    fields.push({ field, name, values: read.values, enumNames: Array.isArray(property.enumNames) });
  }
  return fields;
}

/** A question with what the answer to the server needs of it. */
export interface ServerAsk {
  ask: Ask;
  /** Empty for an address. */
  fields: readonly ServerField[];
}

/** The message in a few printable lines. */
function messageOf(message: unknown, redact: Redactor): string {
  if (typeof message !== "string") return "";
  const lines = cleanText(boundText(message, 4 * MESSAGE_CHARS, redact))
    .split("\n")
    .map((line) => line.replace(/\s+/g, " ").trim())
    .filter((line, index, all) => line !== "" || (index > 0 && all[index - 1] !== ""));
  const shown = lines.length > MESSAGE_LINES ? [...lines.slice(0, MESSAGE_LINES), "…"] : lines;
  return cut(shown.join("\n").trim(), MESSAGE_CHARS);
}

/** A page of the browser; credentials before the host would make the host look like another one. */
function readUrl(url: unknown, message: string): ServerAsk | Unanswerable {
  const parsed = typeof url === "string" && url.length <= URL_CHARS ? URL.parse(url.trim()) : null;
  if (parsed === null || parsed.href.length > URL_CHARS) return { problem: "its address cannot be read" };
  const { protocol, username, password, host, hostname, href } = parsed;
  if (protocol !== "https:" && protocol !== "http:")
    return { problem: "its address is not one of http or https" };
  if (username !== "" || password !== "") return { problem: "its address has a user name or a password" };
  // A browser shows and sends the same address, with each letter beyond ASCII in its code.
  if (!/^[!-~]+$/.test(href)) return { problem: "its address has characters that an address cannot have" };
  const punycode = hostname.split(".").some((label) => label.startsWith("xn--"));
  const ask: Ask = { kind: "url", message, url: href, host, punycode, plain: protocol === "http:" };
  return { ask, fields: [] };
}

/** Reads the params of `elicitation/create`, or one item of the error -32042. */
export function readAsk(params: unknown, redact: Redactor): ServerAsk | Unanswerable {
  if (!isObject(params)) return { problem: "its question has no content" };
  const { mode = "form" } = params;
  const message = messageOf(params.message, redact);
  if (mode === "url") return readUrl(params.url, message);
  if (mode !== "form") return { problem: "its question is of an unknown mode" };
  const fields = readFields(params.requestedSchema, redact);
  if ("problem" in fields) return fields;
  // What cannot be shown as it is has no name beyond this thread: another one stands for it.
  const keys = fields.map(({ name, values, enumNames }) => ({
    name: isPlain(name) ? name : "",
    values: values.every(isPlain) ? values : [],
    ...(enumNames ? { enumNames } : {}),
  }));
  const form = { kind: "form" as const, message, fields: fields.map(({ field }) => field) };
  return { ask: keys.length === 0 ? form : { ...form, keys }, fields };
}

function valueFor({ field, values }: ServerField, value: Exclude<FieldValue, undefined>): unknown {
  if (field.kind === "number") return numberOf(String(value));
  if (field.kind === "choice") return values[Number(value)];
  return Array.isArray(value) ? value.map((position) => values[position]) : value;
}

/** The `content` of the answer; undefined if a value does not fit. */
export function contentOf(
  fields: readonly ServerField[],
  given: readonly FieldValue[],
): Record<string, unknown> | undefined {
  if (fields.some(({ field }, index) => problemOf(field, given[index]) !== undefined)) return undefined;
  return Object.fromEntries(
    fields.flatMap((one, index) => {
      const value = given[index];
      return value === undefined ? [] : [[one.name, valueFor(one, value)]];
    }),
  );
}
