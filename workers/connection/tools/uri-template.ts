/**
 * URI templates (RFC 6570), as far as MCP's resource templates use them: every operator, several variables in one
 * expression, prefixes (`:3`) and lists (`*`). Values come from a model, so each is escaped as its operator demands; only
 * `{+x}` and `{#x}` leave reserved characters unescaped. Pure.
 */
import { percentDecoded } from "../../../src/shared/text/reading.ts";
import { PARAMETER_NAME } from "../../shared/listed.ts";

type Operator = keyof typeof OPERATORS;

interface Variable {
  name: string;
  /** Number of characters of the value that count; undefined: all. */
  prefix: number | undefined;
  isList: boolean;
}

export type TemplateVariable = Pick<Variable, "name" | "isList"> & { required: boolean };
type Expression = { operator: Operator; variables: Variable[] };

export interface UriTemplate {
  /** In the order of the template, each once. */
  variables: TemplateVariable[];
  /** Variables without a value are left out, as the RFC demands. */
  expand(values: Readonly<Record<string, unknown>>): string;
  /** Values that expand to exactly this URI, if they can be found without trying several; otherwise undefined. */
  match(uri: string): Record<string, unknown> | undefined;
}

/** RFC 6570, appendix A. `named`: a value is written as `name=value`. */
const OPERATORS = {
  "": { first: "", separator: ",", named: false, reserved: false },
  "+": { first: "", separator: ",", named: false, reserved: true },
  "#": { first: "#", separator: ",", named: false, reserved: true },
  ".": { first: ".", separator: ".", named: false, reserved: false },
  "/": { first: "/", separator: "/", named: false, reserved: false },
  ";": { first: ";", separator: ";", named: true, reserved: false },
  "?": { first: "?", separator: "&", named: true, reserved: false },
  "&": { first: "&", separator: "&", named: true, reserved: false },
} as const;

const TEMPLATE_CHARS = 10_000;
const VARIABLES = 50;
const EXPRESSION = /^([+#./;?&]?)([^+#./;?&{}].*)$/;
const VARIABLE = /^([^:*]+)(?::([1-9]\d{0,3})|(\*))?$/;

/** Escapes all but the unreserved characters (RFC 3986, 2.3); `encodeURIComponent` leaves five more unescaped. */
const escapeAll = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** Escapes all but reserved characters and escapes. */
const escapeReserved = (text: string): string =>
  encodeURI(text)
    .replaceAll("%25", "%")
    .replaceAll("%5B", "[")
    .replaceAll("%5D", "]")
    .replace(/%(?![0-9A-Fa-f]{2})/g, "%25");

function parseVariable(text: string): Variable | undefined {
  const [, name = "", prefix, list] = VARIABLE.exec(text.trim()) ?? [];
  if (!PARAMETER_NAME.test(name) || name === "__proto__") return undefined;
  return { name, prefix: prefix === undefined ? undefined : Number(prefix), isList: list !== undefined };
}

function parseExpression(text: string): Expression | undefined {
  const [, operator, list] = EXPRESSION.exec(text) ?? [];
  const variables = list?.split(",").map(parseVariable);
  if (!variables || variables.includes(undefined)) return undefined;
  return { operator: operator as Operator, variables: variables as Variable[] };
}

/** A list as texts, or one value as a list of one; empty if there is no value. */
const listOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value])
    .filter((item) => ["string", "number", "boolean"].includes(typeof item))
    .map((item) => String(item).toWellFormed());

function expandVariable({ name, prefix, isList }: Variable, operator: Operator, value: unknown): string[] {
  const { named, reserved } = OPERATORS[operator];
  const values = listOf(value).map((item) => {
    const part = prefix === undefined ? item : [...item].slice(0, prefix).join("");
    return reserved ? escapeReserved(part) : escapeAll(part);
  });
  if (values.length === 0) return [];
  const shown = isList ? values : [values.join(",")];
  if (!named) return shown;
  return shown.map((item) => (item === "" && operator === ";" ? name : `${name}=${item}`));
}

function expandExpression(
  { operator, variables }: Expression,
  values: Readonly<Record<string, unknown>>,
): string {
  const { first, separator } = OPERATORS[operator];
  const parts = variables.flatMap((variable) =>
    expandVariable(
      variable,
      operator,
      Object.hasOwn(values, variable.name) ? values[variable.name] : undefined,
    ),
  );
  return parts.length === 0 ? "" : `${first}${parts.join(separator)}`;
}

/** The values of an expression, read from the text that it expanded to. */
function readExpression({ operator, variables }: Expression, text: string): [string, unknown][] {
  const { first, separator, named } = OPERATORS[operator];
  if (!text.startsWith(first) || text === first) return [];
  const written = text.slice(first.length);
  const [only] = variables;
  const isWhole = variables.length === 1 && !only?.isList && !named;
  const parts = isWhole ? [written] : written.split(separator);
  if (named) {
    return parts.map((part) => {
      const [name = "", ...value] = part.split("=");
      return [name, percentDecoded(value.join("="))];
    });
  }
  if (only?.isList && variables.length === 1) return [[only.name, parts.map(percentDecoded)]];
  return variables.flatMap(({ name }, i) => {
    const part = parts[i];
    return part === undefined ? [] : [[name, percentDecoded(part)] as [string, unknown]];
  });
}

/** Each expression ends where the text behind it first occurs, so the time is linear for every template. */
function readValues(parts: readonly (string | Expression)[], uri: string): [string, unknown][] | undefined {
  const values: [string, unknown][] = [];
  let at = 0;
  for (const [i, part] of parts.entries()) {
    if (typeof part === "string") {
      if (!uri.startsWith(part, at)) return undefined;
      at += part.length;
      continue;
    }
    const next = parts[i + 1];
    const behind = typeof next === "string" ? next : "";
    const isLast = i >= parts.length - 2;
    const end = isLast ? uri.length - behind.length : behind === "" ? at : uri.indexOf(behind, at);
    if (end < at) return undefined;
    values.push(...readExpression(part, uri.slice(at, end)));
    at = end;
  }
  return at === uri.length ? values : undefined;
}

/** Undefined if an expression is not closed, or a variable cannot be a parameter. */
export function parseUriTemplate(template: string): UriTemplate | undefined {
  if (template.length > TEMPLATE_CHARS) return undefined;
  const parts: (string | Expression)[] = [];
  const variables = new Map<string, TemplateVariable>();
  for (let at = 0; at < template.length; ) {
    const open = template.indexOf("{", at);
    const literal = template.slice(at, open === -1 ? undefined : open);
    if (literal.includes("}")) return undefined;
    parts.push(literal);
    if (open === -1) break;
    const close = template.indexOf("}", open);
    const expression = close === -1 ? undefined : parseExpression(template.slice(open + 1, close));
    if (!expression) return undefined;
    parts.push(expression);
    for (const { name, isList } of expression.variables) {
      // A variable in a query, or in a parameter of a path, may be left out.
      const required = !OPERATORS[expression.operator].named;
      const before = variables.get(name);
      variables.set(name, {
        name,
        isList: isList || (before?.isList ?? false),
        required: required || (before?.required ?? false),
      });
    }
    at = close + 1;
  }
  if (variables.size > VARIABLES) return undefined;
  const expand: UriTemplate["expand"] = (values) =>
    parts.map((part) => (typeof part === "string" ? part : expandExpression(part, values))).join("");
  return {
    variables: [...variables.values()],
    expand,
    match: (uri) => {
      const read = readValues(parts, uri)?.filter(([name]) => variables.has(name));
      const values = read && Object.fromEntries(read);
      const isWhole =
        values && [...variables.values()].every(({ name, required }) => !required || name in values);
      return isWhole && expand(values) === uri ? values : undefined;
    },
  };
}
