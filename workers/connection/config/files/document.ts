/**
 * A configuration text as data with the position of every key. JSON and TOML give the same document, so that the
 * checks need not know the format. A text that cannot be parsed is one problem with its position.
 */
import * as jsonc from "jsonc-parser";
import { parse, TomlError } from "smol-toml";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/session.ts";
import { UNSAFE_KEY } from "../entry/interpolate.ts";

/** Line and column, both from 1. */
export interface Position {
  line: number;
  column: number;
}

interface KeyNode {
  /** The position of the value. */
  position: Position;
  keys?: Map<string, KeyNode>;
}

/** The longest path to a value that is ever reported: `projects`, folder, `mcpServers`, server, `oauth`, key. */
const POSITION_DEPTH = 8;

/** Adds a key below `parent`. If a key is given twice, the last one counts, as in `JSON.parse`. */
function addKey(parent: KeyNode, key: string, position: Position): KeyNode {
  const child: KeyNode = { position };
  parent.keys ??= new Map();
  parent.keys.set(key, child);
  return child;
}

/** The position of the value at `path`, or of the nearest value around it. */
function positionAt(root: KeyNode, path: readonly string[]): Position {
  let at = root;
  for (const key of path) {
    const child = at.keys?.get(key);
    if (!child) break;
    at = child;
  }
  return at.position;
}

type TextProblem = Omit<ConfigProblem, "file">;

export interface ConfigDocument {
  /** Plain data. No key is `__proto__`, except a server's name, which is then reported as a mistake. */
  value: unknown;
  /** The position of the value at `path`, or of the nearest value around it. */
  at(path: readonly string[]): Position;
  /** Paths of the keys that an object holds twice; the last one counts. */
  repeated: string[][];
}

export type ParsedText = { document: ConfigDocument } | { problem: TextProblem };

/** The depth of the object below `mcpServers`, whose keys are names. */
const SERVER_NAME_DEPTH = 1;
/** The message for a text that is nested too deeply, in both formats. */
const TOO_DEEP = `it is nested deeper than ${LIMITS.configDepth} levels`;
const tooManyValues = (most: number): string => `it holds more than ${most.toLocaleString("en")} values`;

/** Words for jsonc-parser's error codes, for example `CommaExpected` -> "comma expected". */
const syntaxMessage = (code: jsonc.ParseErrorCode): string =>
  jsonc
    .printParseErrorCode(code)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

/** Ends the reading at the first mistake, because a text of a million commas has a million mistakes. */
class NotJson extends Error {
  readonly position: Position;

  constructor(reason: string, position: Position) {
    super(reason);
    this.position = position;
  }
}

const ORDINARY: PropertyDescriptor = { enumerable: true, configurable: true, writable: true };

/** An object or array that is being read. */
interface Open {
  value: Record<string, unknown> | unknown[];
  /** Undefined if nobody asks for the positions of its keys. */
  node: KeyNode | undefined;
  /** The key of the property that is read next. */
  key: string;
  /** Its values, and the values below, belong to a key that is left out. */
  isLeftOut: boolean;
}

/** Builds the value of a text and the tree of key offsets, in one pass and without recursion. */
class Builder {
  value: unknown;
  readonly root: KeyNode = { position: { line: 1, column: 1 } };
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

  literal(value: unknown, position: Position): void {
    this.#put(value, position);
  }

  begin(value: Open["value"], position: Position): void {
    if (this.#open.length === LIMITS.configDepth) throw new NotJson(TOO_DEEP, position);
    const parent = this.#open.at(-1);
    const isLeftOut = parent !== undefined && (parent.isLeftOut || this.#isUnsafe(parent));
    const node = this.#put(value, position);
    this.#open.push({ value, node, key: "", isLeftOut });
  }

  end(): void {
    this.#open.pop();
  }

  /** Whether the innermost object's next key would change the object instead of naming a property. */
  #isUnsafe({ key }: Open): boolean {
    return key === UNSAFE_KEY && this.#open.length - 1 !== SERVER_NAME_DEPTH;
  }

  /** Puts a value into the innermost object or list. Gives the node for the positions of the keys below the value. */
  #put(value: unknown, position: Position): KeyNode | undefined {
    if (++this.#values > this.#most) throw new NotJson(tooManyValues(this.#most), position);
    const parent = this.#open.at(-1);
    if (!parent) {
      this.value = value;
      this.root.position = position;
      return this.root;
    }
    if (Array.isArray(parent.value)) {
      parent.key = String(parent.value.length);
      parent.value.push(value);
      // A longer list is a mistake as a whole: its items need no positions.
      if (parent.value.length > LIMITS.configItems) return undefined;
    } else if (parent.key === UNSAFE_KEY) {
      if (this.#isUnsafe(parent)) return undefined;
      // An assignment would change the object's prototype.
      Object.defineProperty(parent.value, UNSAFE_KEY, { value, ...ORDINARY });
    } else parent.value[parent.key] = value;
    if (!parent.node || this.#open.length > POSITION_DEPTH) return undefined;
    return addKey(parent.node, parent.key, position);
  }
}

/** jsonc-parser counts both from 0. */
const from1 = (line: number, column: number): Position => ({ line: line + 1, column: column + 1 });

/** Throws `NotJson`. */
function build(text: string, mostValues: number): Builder {
  const builder = new Builder(mostValues);
  jsonc.visit(
    text,
    {
      onObjectBegin: (_offset, _length, line, column) => builder.begin({}, from1(line, column)),
      onArrayBegin: (_offset, _length, line, column) => builder.begin([], from1(line, column)),
      onObjectEnd: () => builder.end(),
      onArrayEnd: () => builder.end(),
      onObjectProperty: (key) => builder.property(key),
      onLiteralValue: (value, _offset, _length, line, column) => builder.literal(value, from1(line, column)),
      onError: (code, _offset, _length, line, column) => {
        throw new NotJson(syntaxMessage(code), from1(line, column));
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
  try {
    const { value, root, repeated, isEmpty } = build(text, mostValues);
    if (isEmpty) return notJson("no value", root.position);
    return { document: { value, repeated, at: (path) => positionAt(root, path) } };
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return notJson(error.message, error.position);
  }
}

const PART = /"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+/g;

/** `a."b.c".d` -> its parts; quoted parts without their quotes. */
function dottedKey(text: string): string[] {
  const parts = text.match(PART) ?? [];
  return parts.map((part) => (/^["']/.test(part) ? part.slice(1, -1) : part));
}

const KEY = `(?:"(?:[^"\\\\\\n]|\\\\.)*"|'[^'\\n]*'|[A-Za-z0-9_-]+)`;
const DOTTED = `${KEY}(?:\\s*\\.\\s*${KEY})*`;
const TABLE_LINE = new RegExp(`^\\s*\\[\\[?\\s*(${DOTTED})\\s*\\]`);
const KEY_LINE = new RegExp(`^\\s*(${DOTTED})\\s*=`);
/** No key of a program's file is longer. Characters further right belong to a value. */
const KEY_CHARS = 1_000;

/** The node below `from` that the keys lead to. New keys get `position`. */
function enter(from: KeyNode, keys: readonly string[], position: Position): KeyNode {
  let at = from;
  for (const key of keys.slice(0, POSITION_DEPTH)) at = at.keys?.get(key) ?? addKey(at, key, position);
  return at;
}

/** The tree of every table header and key line. */
function keyLines(text: string): KeyNode {
  const root: KeyNode = { position: { line: 1, column: 1 } };
  let table = root;
  for (const [i, line] of text.split("\n").entries()) {
    const start = line.slice(0, KEY_CHARS);
    const header = TABLE_LINE.exec(start)?.[1];
    const key = header ?? KEY_LINE.exec(start)?.[1];
    if (key === undefined) continue;
    const position = { line: i + 1, column: start.length - start.trimStart().length + 1 };
    const found = enter(header === undefined ? table : root, dottedKey(key), position);
    if (header !== undefined) table = found;
  }
  return root;
}

/** How many values a text may hold, and how many were counted. */
interface Budget {
  most: number;
  used: number;
}

/**
 * A TOML value as plain data: dates as text, no `__proto__`. Throws `RangeError` if the text is too large or too
 * deep.
 */
function plain(value: unknown, budget: Budget, depth = 0): unknown {
  if (++budget.used > budget.most) throw new RangeError(tooManyValues(budget.most));
  if (depth > LIMITS.configDepth) throw new RangeError(TOO_DEEP);
  if (Array.isArray(value)) return value.map((item) => plain(item, budget, depth + 1));
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== UNSAFE_KEY)
      .map(([key, entry]) => [key, plain(entry, budget, depth + 1)]),
  );
}

/** Throws what the parser throws, and `RangeError` if the text is too large or too deep. */
function parsed(text: string, mostValues: number): unknown {
  if (text.length > LIMITS.tomlFileBytes)
    throw new RangeError(`it is larger than ${LIMITS.tomlFileBytes / 2 ** 20} MiB`);
  return plain(parse(text, { maxDepth: LIMITS.configDepth }), { most: mostValues, used: 0 });
}

/** The text has no BOM. Never throws. */
export function parseTomlText(text: string, mostValues: number = LIMITS.configFileValues): ParsedText {
  let value: unknown;
  try {
    value = parsed(text, mostValues);
  } catch (error) {
    const toml = error instanceof TomlError ? error : undefined;
    const reason = (error as Error).message.split("\n", 1)[0]?.replace("Invalid TOML document: ", "");
    return {
      problem: {
        severity: "error",
        line: toml?.line ?? 1,
        column: toml?.column ?? 1,
        message: `not valid TOML: ${reason}`,
        remedy: "Correct it there; nothing of this file is used until then.",
      },
    };
  }
  const positions = keyLines(text);
  return { document: { value, at: (path) => positionAt(positions, path), repeated: [] } };
}
