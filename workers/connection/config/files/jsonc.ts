/**
 * A configuration text as data with the position of every key. JSON and TOML give the same document, so that the
 * checks need not know the format. A text that cannot be parsed is one problem with its position.
 */
import * as jsonc from "jsonc-parser";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { ConfigProblem } from "../../../../src/shared/protocol/status.ts";
import { UNSAFE_KEY } from "../entry/interpolate.ts";
import { addKey, type KeyNode, POSITION_DEPTH, positionAt } from "./key-positions.ts";
import { type Position, positions } from "./line-positions.ts";

export type TextProblem = Omit<ConfigProblem, "file">;

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
export const TOO_DEEP = `it is nested deeper than ${LIMITS.configDepth} levels`;
export const tooManyValues = (most: number): string =>
  `it holds more than ${most.toLocaleString("en")} values`;

/** Words for jsonc-parser's error codes, for example `CommaExpected` -> "comma expected". */
const syntaxMessage = (code: jsonc.ParseErrorCode): string =>
  jsonc
    .printParseErrorCode(code)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

/** Ends the reading at the first mistake, because a text of a million commas has a million mistakes. */
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
  /** Undefined if nobody asks for the positions of its keys. */
  node: KeyNode<number> | undefined;
  /** The key of the property that is read next. */
  key: string;
  /** Its values, and the values below, belong to a key that is left out. */
  isLeftOut: boolean;
}

/** Builds the value of a text and the tree of key offsets, in one pass and without recursion. */
class Builder {
  value: unknown;
  readonly root: KeyNode<number> = { position: 0 };
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
    const node = this.#put(value, offset);
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
  #put(value: unknown, offset: number): KeyNode<number> | undefined {
    if (++this.#values > this.#most) throw new NotJson(tooManyValues(this.#most), offset);
    const parent = this.#open.at(-1);
    if (!parent) {
      this.value = value;
      this.root.position = offset;
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
    return addKey(parent.node, parent.key, offset);
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
    const { value, root, repeated, isEmpty } = build(text, mostValues);
    if (isEmpty) return notJson("no value", positionOf(0));
    return { document: { value, repeated, at: (path) => positionOf(positionAt(root, path)) } };
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    return notJson(error.message, positionOf(error.offset));
  }
}
