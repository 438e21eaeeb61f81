/** A text of the command line as the value that the parameter's schema asks for. Pure. */
import { isObject } from "../../shared/protocol/is-object.ts";
import { isExact, parseArguments } from "../../shared/text/reading.ts";
import { typeOf } from "../../shared/text/signature.ts";
import { cut, oneLine } from "../../shared/text/unprintable.ts";
import { alternatives, resolved, type Schema } from "./schema.ts";

export type Typed = { value: unknown } | { problem: string };

const SHOWN_CHARS = 80;
const TYPE_CHARS = 200;
const DEPTH = 3;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** What a parameter takes, in words, for example `integer` or `"asc" | "desc"`. */
export const takes = (schema: unknown, root: Schema): string =>
  oneLine(typeOf(resolved(schema, root), DEPTH), TYPE_CHARS);

export const quoted = (text: string): string => JSON.stringify(cut(text, SHOWN_CHARS));

export function parseJson(text: string): Typed {
  try {
    return { value: parseArguments(text) };
  } catch (error) {
    return { problem: oneLine((error as Error).message, TYPE_CHARS) };
  }
}

/** The values that the schema lists, as an enum or a constant. */
function listed(schema: Schema): readonly unknown[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum;
  return schema.const === undefined ? undefined : [schema.const];
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** The value of one alternative; undefined if the text is none of its values. */
function fitting(text: string, schema: Schema): { value: unknown } | undefined {
  const values = listed(schema);
  if (values) {
    const found = values.find((value) => asText(value) === text);
    return found === undefined ? undefined : { value: found };
  }
  switch (schema.type) {
    case "integer":
    case "number": {
      const number = NUMBER.test(text.trim()) && isExact(text.trim()) ? Number(text) : Number.NaN;
      const fits = Number.isFinite(number) && (schema.type === "number" || Number.isInteger(number));
      return fits ? { value: number } : undefined;
    }
    case "boolean":
      return text === "true" || text === "false" ? { value: text === "true" } : undefined;
    case "null":
      return text === "null" ? { value: null } : undefined;
    case "array":
    case "object": {
      const parsed = /^\s*[{[]/.test(text) ? parseJson(text) : undefined;
      if (!parsed || !("value" in parsed)) return undefined;
      const fits = schema.type === "array" ? Array.isArray(parsed.value) : isObject(parsed.value);
      return fits ? { value: parsed.value } : undefined;
    }
    default:
      return { value: text };
  }
}

/** Texts fit almost everything, so they are tried last. */
const isLast = ({ type, enum: values }: Schema): boolean =>
  values === undefined && (type === "string" || type === undefined);

/** Whether the parameter is a list, and of what. */
export function itemsOf(schema: unknown, root: Schema): Schema | undefined {
  const list = alternatives(resolved(schema, root), root).find(({ type }) => type === "array");
  return list && resolved(list.items, root);
}

export function typed(text: string, schema: unknown, root: Schema): Typed {
  const members = alternatives(resolved(schema, root), root);
  for (const member of [...members].sort((a, b) => Number(isLast(a)) - Number(isLast(b)))) {
    const found = fitting(text, member);
    if (found) return found;
  }
  const isOther = NUMBER.test(text.trim()) && !isExact(text.trim());
  const why = isOther ? `, which would be sent as ${JSON.stringify(Number(text))}` : "";
  return { problem: `takes ${takes(schema, root)}, not ${quoted(text)}${why}` };
}
