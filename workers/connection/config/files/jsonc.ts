/**
 * A configuration text as data plus the place of every key, the same for JSON and TOML, so that what
 * checks it need not know which it was. A text that cannot be parsed is one problem with its position.
 */

import * as jsonc from "jsonc-parser";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { UNSAFE_KEY } from "../entry/unsafe-key.ts";
import { addKey, type KeyPlace, PLACED_DEPTH, placeAt } from "./key-positions.ts";

export interface Position {
  /** From 1. */
  line: number;
  column: number;
}

export type TextProblem = Omit<ConfigProblem, "file">;

export interface ConfigDocument {
  /** Plain data. No key is `__proto__`, except a server's name, so that it can be told as a mistake. */
  value: unknown;
  /** Where the value at `path` stands, or else the nearest one around it. */
  at(path: readonly string[]): Position;
  /** Keys that an object holds twice; the last one counts. */
  repeated: string[][];
}

export type ParsedText = { document: ConfigDocument } | { problem: TextProblem };

/** Of the path `mcpServers`, whose keys are names. */
const SERVER_NAME_DEPTH = 1;
/** What is said of a text that is too much for a configuration, in both formats. */
export const TOO_DEEP = `it is nested deeper than ${LIMITS.configDepth} levels`;
export const tooManyValues = (most: number): string =>
  `it holds more than ${most.toLocaleString("en")} values`;

/** Characters between two marks. A text can be nothing but line ends: one mark for each would be too many. */
const MARK_CHARS = 1_024;

interface Mark {
  line: number;
  /** Where that line starts. */
  start: number;
}

/** The line that is open at the end of some characters, which begin at `from`. */
function after(mark: Mark, characters: string, from: number): Mark {
  let { line, start } = mark;
  for (let i = characters.indexOf("\n"); i !== -1; i = characters.indexOf("\n", i + 1)) {
    line++;
    start = from + i + 1;
  }
  return { line, start };
}

/** The line that is open at each multiple of `MARK_CHARS`. */
function marksOf(text: string): Mark[] {
  const marks: Mark[] = [];
  let mark: Mark = { line: 1, start: 0 };
  for (let from = 0; from <= text.length; from += MARK_CHARS) {
    marks.push(mark);
    mark = after(mark, text.slice(from, from + MARK_CHARS), from);
  }
  return marks;
}

/** Makes positions of one text: offsets to line and column, both from 1. */
export function positions(text: string): (offset: number) => Position {
  let marks: Mark[] | undefined;
  return (offset) => {
    // Most files are read without asking for a position.
    marks ??= marksOf(text);
    const block = Math.floor(offset / MARK_CHARS);
    const from = block * MARK_CHARS;
    const { line, start } = after(marks[block] ?? { line: 1, start: 0 }, text.slice(from, offset), from);
    return { line, column: offset - start + 1 };
  };
}

/** Words for jsonc-parser's error codes, for example `CommaExpected` -> "comma expected". */
const syntaxMessage = (code: jsonc.ParseErrorCode): string =>
  jsonc
    .printParseErrorCode(code)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

/** Ends the reading at the first mistake: a text of a million commas has a million of them. */
class NotJson extends Error {
  readonly offset: number;

  constructor(reason: string, offset: number) {
    super(reason);
    this.offset = offset;
  }
}

const ORDINARY: PropertyDescriptor = { enumerable: true, configurable: true, writable: true };

/** An object or array that is being read. */
interface Open {
  value: Record<string, unknown> | unknown[];
  /** Undefined where nobody asks for the places of its keys. */
  place: KeyPlace<number> | undefined;
  /** Of the property that is read next. */
  key: string;
  /** Its values, and those below, belong to a key that is left out. */
  isLeftOut: boolean;
}

/** Builds the value of a text, with the offset of each key, in one pass and without recursion of its own. */
class Builder {
  value: unknown;
  readonly places: KeyPlace<number> = { place: 0 };
  readonly repeated: string[][] = [];
  readonly #open: Open[] = [];
  readonly #most: number;
  #values = 0;

  constructor(mostValues: number) {
    this.#most = mostValues;
  }

  get isEmpty(): boolean {
    return this.#values === 0;
  }

  property(key: string): void {
    const parent = this.#open.at(-1);
    if (!parent) return;
    parent.key = key;
    const isRepeated = !parent.isLeftOut && !this.#isUnsafe(parent) && Object.hasOwn(parent.value, key);
    if (isRepeated) this.repeated.push(this.#open.map((open) => open.key));
  }

  literal(value: unknown, offset: number): void {
    this.#put(value, offset);
  }

  begin(value: Open["value"], offset: number): void {
    if (this.#open.length === LIMITS.configDepth) throw new NotJson(TOO_DEEP, offset);
    const parent = this.#open.at(-1);
    const isLeftOut = parent !== undefined && (parent.isLeftOut || this.#isUnsafe(parent));
    const place = this.#put(value, offset);
    this.#open.push({ value, place, key: "", isLeftOut });
  }

  end(): void {
    this.#open.pop();
  }

  /** Whether the innermost object's next key would change the object instead of naming a property. */
  #isUnsafe({ key }: Open): boolean {
    return key === UNSAFE_KEY && this.#open.length - 1 !== SERVER_NAME_DEPTH;
  }

  /** Answers where keys below the value are to be placed. */
  #put(value: unknown, offset: number): KeyPlace<number> | undefined {
    if (++this.#values > this.#most) throw new NotJson(tooManyValues(this.#most), offset);
    const parent = this.#open.at(-1);
    if (!parent) {
      this.value = value;
      this.places.place = offset;
      return this.places;
    }
    if (Array.isArray(parent.value)) {
      parent.key = String(parent.value.length);
      parent.value.push(value);
      // A longer list is a mistake as a whole.
      if (parent.value.length > LIMITS.configItems) return undefined;
    } else if (parent.key === UNSAFE_KEY) {
      if (this.#isUnsafe(parent)) return undefined;
      // An assignment would change the object.
      Object.defineProperty(parent.value, UNSAFE_KEY, { value, ...ORDINARY });
    } else parent.value[parent.key] = value;
    if (!parent.place || this.#open.length > PLACED_DEPTH) return undefined;
    return addKey(parent.place, parent.key, offset);
  }
}

/** Throws `NotJson`. */
function build(text: string, mostValues: number): Builder {
  const builder = new Builder(mostValues);
  jsonc.visit(
    text,
    {
      onObjectBegin: (offset) => builder.begin({}, offset),
      onArrayBegin: (offset) => builder.begin([], offset),
      onObjectEnd: () => builder.end(),
      onArrayEnd: () => builder.end(),
      onObjectProperty: (key) => builder.property(key),
      onLiteralValue: (value: unknown, offset) => builder.literal(value, offset),
      onError: (code, offset) => {
        throw new NotJson(syntaxMessage(code), offset);
      },
    },
    { allowTrailingComma: true, disallowComments: false },
  );
  return builder;
}

const notJson = (reason: string, position: Position): ParsedText => ({
  problem: {
    severity: "error",
    ...position,
    message: `not valid JSON: ${reason}`,
    remedy: "Correct it there; nothing of this file is used until then.",
  },
});

/** JSON with comments and trailing commas; the text has no BOM. Never throws. */
export function parseJsonc(text: string, mostValues: number = LIMITS.configFileValues): ParsedText {
  const positionOf = positions(text);
  try {
    const { value, places, repeated, isEmpty } = build(text, mostValues);
    if (isEmpty) return notJson("no value", positionOf(0));
    return { document: { value, repeated, at: (path) => positionOf(placeAt(places, path)) } };
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return notJson(error.message, positionOf(error.offset));
  }
}
