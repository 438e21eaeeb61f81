/**
 * A configuration text as data plus the place of every key, the same for JSON and TOML, so that what
 * checks it need not know which it was. A text that cannot be parsed is one problem with its position.
 */
import * as jsonc from "jsonc-parser";
import type { ConfigProblem } from "../../../src/protocol/types.ts";

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

export const UNSAFE_KEY = "__proto__";
/** Of the path `mcpServers`, whose keys are names. */
const SERVER_NAME_DEPTH = 1;

/** Makes positions of one text: offsets to line and column, both from 1. */
export function positions(text: string): (offset: number) => Position {
  const starts = [0];
  for (let i = text.indexOf("\n"); i !== -1; i = text.indexOf("\n", i + 1)) starts.push(i + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

/** The last property of that name: as in `JSON.parse`, a later one counts. */
const propertyOf = (node: jsonc.Node, key: string): jsonc.Node | undefined =>
  node.type === "object"
    ? node.children?.findLast((property) => property.children?.[0]?.value === key)?.children?.[1]
    : undefined;

const childOf = (node: jsonc.Node, key: string): jsonc.Node | undefined =>
  node.type === "array" ? node.children?.[Number(key)] : propertyOf(node, key);

function collect(node: jsonc.Node, path: string[], repeated: string[][]): unknown {
  if (node.type === "array") {
    return (node.children ?? []).map((child, i) => collect(child, [...path, String(i)], repeated));
  }
  if (node.type !== "object") return node.value;
  const object: Record<string, unknown> = {};
  for (const { children } of node.children ?? []) {
    const key = String(children?.[0]?.value);
    const value = children?.[1];
    if (!value || (key === UNSAFE_KEY && path.length !== SERVER_NAME_DEPTH)) continue;
    if (Object.hasOwn(object, key)) repeated.push([...path, key]);
    const property = collect(value, [...path, key], repeated);
    // An assignment to `__proto__` would change the object instead of naming a property.
    Object.defineProperty(object, key, {
      value: property,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return object;
}

/** Words for jsonc-parser's error codes, for example `CommaExpected` -> "comma expected". */
const syntaxMessage = (code: jsonc.ParseErrorCode): string =>
  jsonc
    .printParseErrorCode(code)
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase();

const notJson = (reason: string, position: Position): ParsedText => ({
  problem: {
    severity: "error",
    ...position,
    message: `not valid JSON: ${reason}`,
    remedy: "Correct it there; nothing of this file is used until then.",
  },
});

/** JSON with comments and trailing commas; the text has no BOM. Never throws. */
export function parseJsonc(text: string): ParsedText {
  const positionOf = positions(text);
  try {
    const errors: jsonc.ParseError[] = [];
    const root = jsonc.parseTree(text, errors, { allowTrailingComma: true, disallowComments: false });
    const error = errors[0];
    if (error) return notJson(syntaxMessage(error.error), positionOf(error.offset));
    if (!root) return notJson("no value", positionOf(0));
    const repeated: string[][] = [];
    const value = collect(root, [], repeated);
    const at = (path: readonly string[]): Position => {
      let node = root;
      for (const key of path) {
        const child = childOf(node, key);
        if (!child) break;
        node = child;
      }
      return positionOf(node.offset);
    };
    return { document: { value, at, repeated } };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return notJson("it is nested too deeply", positionOf(0));
  }
}
