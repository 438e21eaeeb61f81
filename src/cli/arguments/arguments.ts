/**
 * The arguments of a call from words of the command line. Owns: `key=value`, `key=@FILE`, `key:=JSON`, `key:=@FILE`,
 * `a.b=c`, and the reading of files and of stdin for `--args`. Must not: know servers.
 * To read another form of a word: `splitWord`; to read another type: `typed`.
 */

import { isObject } from "../../shared/protocol/values.ts";
import { formatBytes } from "../../shared/text/amounts.ts";
import { isExact, parseArguments } from "../../shared/text/reading.ts";
import { typeOf } from "../../shared/text/signature.ts";
import { cut, oneLine } from "../../shared/text/unprintable.ts";
import { usage } from "../console/failure.ts";
import { ARGUMENT_BYTES, readRegular } from "../place/read-regular.ts";
import { didYouMean } from "../words/parse.ts";

type Typed = { value: unknown } | { problem: string };

const SHOWN_CHARS = 80;
const TYPE_CHARS = 200;
const TYPE_DEPTH = 3;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** What a parameter takes, as the schema says it, for example `integer` or `"asc" | "desc"`. */
const typeIn = (schema: unknown, root: Schema): string =>
  oneLine(typeOf(resolved(schema, root), TYPE_DEPTH), TYPE_CHARS);

const IN_WORDS: Readonly<Record<string, string>> = {
  number: "a number",
  integer: "a whole number",
  string: "a text",
  boolean: "true or false",
  object: "a JSON object",
};

/** The same in words, for example `a whole number` or `"asc" | "desc"`. */
function takes(schema: unknown, root: Schema): string {
  const type = typeIn(schema, root);
  return Object.hasOwn(IN_WORDS, type) ? (IN_WORDS[type] ?? type) : type;
}

const quoted = (text: string): string => JSON.stringify(cut(text, SHOWN_CHARS));

function parseJson(text: string): Typed {
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
function itemsOf(schema: unknown, root: Schema): Schema | undefined {
  const list = alternatives(resolved(schema, root), root).find(({ type }) => type === "array");
  return list && resolved(list.items, root);
}

function typed(text: string, schema: unknown, root: Schema): Typed {
  const members = alternatives(resolved(schema, root), root);
  for (const member of [...members].sort((a, b) => Number(isLast(a)) - Number(isLast(b)))) {
    const found = fitting(text, member);
    if (found) return found;
  }
  const isOther = NUMBER.test(text.trim()) && !isExact(text.trim());
  const why = isOther ? `, which would be sent as ${JSON.stringify(Number(text))}` : "";
  return { problem: `takes ${takes(schema, root)}, not ${quoted(text)}${why}` };
}

/** Whether the word fits a member that accepts only some texts: a number, a boolean, null, a listed value, JSON. */
const isApart = (text: string, schema: unknown, root: Schema): boolean =>
  alternatives(resolved(schema, root), root).some((one) => !isLast(one) && fitting(text, one) !== undefined);

type Schema = Record<string, unknown>;

const REFERENCES = 10;
const MEMBERS = 20;

function pointed(root: Schema, reference: string): unknown {
  if (!reference.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** The schema behind references; an empty one for anything that is no schema. */
function resolved(schema: unknown, root: Schema): Schema {
  let at = schema;
  for (let count = 0; isObject(at) && typeof at.$ref === "string" && count < REFERENCES; count++) {
    at = pointed(root, at.$ref);
  }
  return isObject(at) && typeof at.$ref !== "string" ? at : {};
}

/** The schemas of which one must fit: the members of a union, or of a list of types, or the schema itself. */
function alternatives(schema: Schema, root: Schema): Schema[] {
  const union = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(union) && union.length > 0) {
    return union.slice(0, MEMBERS).flatMap((member) => {
      const one = resolved(member, root);
      return one.anyOf === undefined && one.oneOf === undefined ? alternatives(one, root) : [{}];
    });
  }
  if (Array.isArray(schema.type)) return schema.type.slice(0, MEMBERS).map((type) => ({ ...schema, type }));
  return [schema];
}

/** Whether an object fits, as far as the schema says. */
const isObjects = (schema: Schema): boolean => (schema.type ?? "object") === "object" && !listed(schema);

const propertiesOf = (schema: Schema): Schema => (isObject(schema.properties) ? schema.properties : {});

const requiredOf = (schema: Schema): string[] =>
  Array.isArray(schema.required)
    ? schema.required.filter((name): name is string => typeof name === "string")
    : [];

/** Whether names that the schema does not declare are meant to be given. */
const takesOthers = (schema: Schema): boolean =>
  schema.additionalProperties === true ||
  isObject(schema.additionalProperties) ||
  isObject(schema.patternProperties) ||
  Object.keys(propertiesOf(schema)).length === 0;

interface Input {
  /** Reads all of stdin, at most `ARGUMENT_BYTES`; undefined if there is more. */
  stdin: () => Promise<Buffer | undefined>;
}

interface SplitWord {
  path: string;
  isJson: boolean;
  text: string;
}

const NAME_CHARS = 100;
const DEPTH = 20;

const shownKey = (key: string): string => oneLine(key, NAME_CHARS);

function splitWord(word: string): SplitWord {
  if (word.startsWith("{"))
    throw usage(`${quoted(word)} is not key=value.`, "One JSON object goes with --args.");
  const at = word.indexOf("=");
  if (at <= 0 || word.startsWith(":=")) {
    throw usage(
      `${quoted(word)} is not key=value.`,
      "Several words of one value need quotes: 'text=two words'.",
    );
  }
  const isJson = word[at - 1] === ":";
  return { path: word.slice(0, isJson ? at - 1 : at), isJson, text: word.slice(at + 1) };
}

function fileText(key: string, path: string): string {
  if (path === "") throw usage(`${key}: the name of the file is missing behind @.`);
  const read = readRegular(path, ARGUMENT_BYTES);
  if (read === undefined) throw usage(`${key}: there is no file ${path}.`);
  if ("problem" in read) throw usage(`${key}: ${path} ${read.problem}.`);
  return utf8(read.bytes, `${key}: ${path}`);
}

function utf8(bytes: Buffer, what: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usage(`${what} is not UTF-8 text.`);
  }
}

/** A property that must be there although nobody can name it, such as the prototype, is refused. */
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);

/** Where a value goes, and what it must be. */
interface Place {
  target: Record<string, unknown>;
  key: string;
  schema: unknown;
}

class Builder {
  readonly #root: Schema;
  readonly #tool: string;
  /** Path -> the word's text, which may become the first item of a list; undefined for JSON. */
  readonly #given = new Map<string, string | undefined>();
  readonly value: Record<string, unknown>;

  constructor(tool: string, root: Schema, start: Record<string, unknown>) {
    this.#tool = tool;
    this.#root = root;
    this.value = start;
  }

  add(word: string): void {
    const { path, isJson, text } = splitWord(word);
    const { target, key, schema } = this.#find(path, isJson);
    const shown = shownKey(path);
    const value = text.startsWith("@") ? fileText(shown, text.slice(1)) : text;
    if (isJson) {
      const parsed = parseJson(value);
      if ("problem" in parsed) throw usage(`${shown} is not JSON: ${parsed.problem}`);
      this.#once(path, schema, undefined);
      target[key] = parsed.value;
      return;
    }
    const items = itemsOf(schema, this.#root);
    const whole = typed(value, schema, this.#root);
    const isList = "value" in whole && Array.isArray(whole.value);
    // One item of a list, if the key came before or nothing but a text would take the word. A list as JSON is the whole list.
    const mayBeItem = items && !isList && !isApart(value, schema, this.#root);
    const isItem = mayBeItem && ("problem" in whole || "value" in typed(value, items, this.#root));
    if (items && !isList && (isItem || this.#given.has(path))) {
      this.#addItem({ target, key, path, schema }, value, items);
      return;
    }
    if ("problem" in whole) throw usage(`${shown} ${whole.problem}.`);
    this.#once(path, schema, value);
    target[key] = whole.value;
  }

  #addItem({ target, key, path, schema }: Place & { path: string }, text: string, items: Schema): void {
    const first = this.#given.get(path);
    const isLonger = this.#given.has(path) && Array.isArray(target[key]);
    if (!isLonger && first === undefined) this.#once(path, schema, text);
    const texts = isLonger || first === undefined ? [text] : [first, text];
    const added = texts.map((one) => {
      const item = typed(one, items, this.#root);
      if ("problem" in item) throw usage(`An item of ${shownKey(path)} ${item.problem}.`);
      return item.value;
    });
    target[key] = isLonger ? [...(target[key] as unknown[]), ...added] : added;
  }

  /** `text`: of the word, if it is no JSON. */
  #once(path: string, schema: unknown, text: string | undefined): void {
    if (this.#given.has(path)) {
      throw usage(
        `${shownKey(path)} is given twice, and it takes one value (${typeIn(schema, this.#root)}).`,
      );
    }
    this.#given.set(path, text);
  }

  /** Walks down `a.b.c`, unless a property has the whole name. Makes the objects on the way. */
  #find(path: string, isJson: boolean): Place {
    const isWhole = Object.hasOwn(propertiesOf(resolved(this.#root, this.#root)), path);
    const keys = isWhole ? [path] : path.split(".");
    if (keys.length > DEPTH || keys.some((key) => key === "" || FORBIDDEN.has(key))) {
      throw usage(`${quoted(path)} is not the name of a parameter.`);
    }
    let target = this.value;
    let schema: Schema = resolved(this.#root, this.#root);
    for (const [at, key] of keys.entries()) {
      const below = this.#property(schema, key, keys.slice(0, at + 1).join("."), isJson);
      if (at === keys.length - 1) return { target, key, schema: below };
      const next = Object.hasOwn(target, key) ? target[key] : {};
      if (!isObject(next))
        throw usage(`${shownKey(keys.slice(0, at + 1).join("."))} is given as a value already.`);
      target[key] = next;
      target = next;
      schema = resolved(below, this.#root);
      const objects = alternatives(schema, this.#root).filter(isObjects);
      if (objects.length === 0) {
        throw usage(`${shownKey(key)} takes ${takes(schema, this.#root)}, so nothing is within it.`);
      }
      // The members of a union may only say more of an object whose properties stand beside them.
      const [only] = objects;
      const saysItself = isObject(schema.properties) || isObject(schema.additionalProperties);
      if (only && objects.length === 1 && !saysItself) schema = only;
    }
    throw usage(`${quoted(path)} is not the name of a parameter.`);
  }

  #property(schema: Schema, key: string, path: string, isJson: boolean): unknown {
    const properties = propertiesOf(schema);
    if (Object.hasOwn(properties, key)) return properties[key];
    if (takesOthers(schema) || (isJson && schema.additionalProperties !== false)) {
      return isObject(schema.additionalProperties) ? schema.additionalProperties : {};
    }
    const names = Object.keys(properties);
    const shown = names.map(shownKey);
    throw usage(
      `${this.#tool} has no parameter ${shownKey(path)}.${didYouMean(key, shown)}`,
      `It takes: ${oneLine(shown.join(", "), 1_000) || "none"}.`,
    );
  }

  checkRequired(): void {
    const root = resolved(this.#root, this.#root);
    const missing = requiredOf(root).filter((name) => !Object.hasOwn(this.value, name));
    const [first] = missing;
    if (first === undefined) return;
    const what = missing.map((name) => `${shownKey(name)} (${typeIn(propertiesOf(root)[name], this.#root)})`);
    throw usage(
      `${this.#tool} needs ${oneLine(what.join(", "), 1_000)}.`,
      `Give ${missing.length === 1 ? "it" : "them"} as ${shownKey(first)}=…`,
    );
  }
}

async function wholeArguments(text: string, { stdin }: Input): Promise<Record<string, unknown>> {
  let json = text;
  if (text === "-") {
    const bytes = await stdin();
    if (bytes === undefined) throw usage(`stdin has more than ${formatBytes(ARGUMENT_BYTES)}.`);
    json = utf8(bytes, "stdin");
  } else if (text.startsWith("@")) json = fileText("--args", text.slice(1));
  const parsed = parseJson(json.replace(/^\ufeff/, ""));
  if ("problem" in parsed) throw usage(`The arguments are not JSON: ${parsed.problem}`);
  if (!isObject(parsed.value)) throw usage('The arguments must be one JSON object, such as {"path": "."}.');
  return parsed.value;
}

/**
 * `words`: `key=value` and its like. `json`: the value of `--args`, over which the words count. Without words the JSON
 * goes to the server as it is, which judges it. Throws a failure of usage.
 */
export async function readArguments(
  tool: string,
  schema: Schema,
  { words, json, input }: { words: readonly string[]; json: string | undefined; input: Input },
): Promise<Record<string, unknown>> {
  const start = json === undefined ? {} : await wholeArguments(json, input);
  if (json !== undefined && words.length === 0) return start;
  const builder = new Builder(tool, schema, start);
  for (const word of words) builder.add(word);
  builder.checkRequired();
  return builder.value;
}

/** Whether the words can be read, without reading a file: a quick check before anything is started. */
export const looksLikeArguments = (words: readonly string[]): void => {
  for (const word of words) splitWord(word);
};
