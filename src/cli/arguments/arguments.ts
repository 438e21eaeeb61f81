/**
 * The arguments of a call from words of the command line. Owns: `key=value`, `key=@FILE`, `key:=JSON`, `key:=@FILE`,
 * `a.b=c`, and the reading of files and of stdin for `--args`. Must not: know servers. Called by: commands/call.ts.
 * To read another form of a word: `splitWord`; to read another type: typed.ts.
 */
import { isObject } from "../../shared/protocol/is-object.ts";
import { formatBytes } from "../../shared/text/amounts.ts";
import { oneLine } from "../../shared/text/unprintable.ts";
import { usage } from "../console/console.ts";
import { ARGUMENT_BYTES, readRegular } from "../place/place.ts";
import { didYouMean } from "../words/words.ts";
import { alternatives, propertiesOf, requiredOf, resolved, type Schema, takesOthers } from "./schema.ts";
import { itemsOf, parseJson, quoted, takes, typed } from "./typed.ts";

export interface Input {
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
  const at = word.indexOf("=");
  if (at <= 0 || word.startsWith(":=")) {
    throw usage(
      `${quoted(word)} is no argument of the form key=value.`,
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
    throw usage(`${what} is no UTF-8 text.`);
  }
}

/** A property that must be there although nobody can name it, such as the prototype, is refused. */
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);

class Builder {
  readonly #root: Schema;
  readonly #tool: string;
  readonly #given = new Set<string>();
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
      if ("problem" in parsed) throw usage(`${shown} is no JSON: ${parsed.problem}`);
      this.#once(path, schema);
      target[key] = parsed.value;
      return;
    }
    const items = itemsOf(schema, this.#root);
    const whole = typed(value, schema, this.#root);
    // A text is no list, so it is one item of it; a list as JSON is the whole list.
    if (items && !("value" in whole && Array.isArray(whole.value))) {
      this.#addItem({ target, key, path }, value, items);
      return;
    }
    if ("problem" in whole) throw usage(`${shown} ${whole.problem}.`);
    this.#once(path, schema);
    target[key] = whole.value;
  }

  #addItem(
    { target, key, path }: { target: Record<string, unknown>; key: string; path: string },
    text: string,
    items: Schema,
  ): void {
    const item = typed(text, items, this.#root);
    if ("problem" in item) throw usage(`An item of ${shownKey(path)} ${item.problem}.`);
    const list = this.#given.has(path) && Array.isArray(target[key]) ? target[key] : [];
    this.#given.add(path);
    target[key] = [...list, item.value];
  }

  #once(path: string, schema: unknown): void {
    if (this.#given.has(path)) {
      throw usage(`${shownKey(path)} is given twice, and it takes one ${takes(schema, this.#root)}.`);
    }
    this.#given.add(path);
  }

  /** Walks down `a.b.c`, unless a property has the whole name. Makes the objects on the way. */
  #find(path: string, isJson: boolean): { target: Record<string, unknown>; key: string; schema: unknown } {
    const isWhole = Object.hasOwn(propertiesOf(resolved(this.#root, this.#root)), path);
    const keys = isWhole ? [path] : path.split(".");
    if (keys.length > DEPTH || keys.some((key) => key === "" || FORBIDDEN.has(key))) {
      throw usage(`${quoted(path)} is no name of a parameter.`);
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
      if (!alternatives(schema, this.#root).some(({ type = "object" }) => type === "object")) {
        throw usage(`${shownKey(key)} takes ${takes(schema, this.#root)}, so nothing is within it.`);
      }
    }
    throw usage(`${quoted(path)} is no name of a parameter.`);
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
    const what = missing.map((name) => `${shownKey(name)} (${takes(propertiesOf(root)[name], this.#root)})`);
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
  if ("problem" in parsed) throw usage(`The arguments are no JSON: ${parsed.problem}`);
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
