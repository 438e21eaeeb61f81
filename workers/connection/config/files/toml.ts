/**
 * A TOML text as a `ConfigDocument`. The parser gives the position of a syntax error but not of a value, so the
 * positions are those of the lines with table headers and keys, which is what people search for.
 */
import { parse, TomlError } from "smol-toml";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import { UNSAFE_KEY } from "../entry/interpolate.ts";
import { type ParsedText, TOO_DEEP, tooManyValues } from "./jsonc.ts";
import { addKey, type KeyNode, POSITION_DEPTH, positionAt } from "./key-positions.ts";
import type { Position } from "./line-positions.ts";

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
function enter(from: KeyNode<Position>, keys: readonly string[], position: Position): KeyNode<Position> {
  let at = from;
  for (const key of keys.slice(0, POSITION_DEPTH)) at = at.keys?.get(key) ?? addKey(at, key, position);
  return at;
}

/** The tree of every table header and key line. */
function keyLines(text: string): KeyNode<Position> {
  const root: KeyNode<Position> = { position: { line: 1, column: 1 } };
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
