/**
 * A TOML text as a `ConfigDocument`. The parser tells where a text is broken but not where a value
 * stands, so positions are found in the lines: table headers and keys, which is what people search for.
 */
import { parse, TomlError } from "smol-toml";
import { type ParsedText, type Position, UNSAFE_KEY } from "./document.ts";

/** `a."b.c".d` -> its parts; quoted parts without their quotes. */
function dottedKey(text: string): string[] {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+/g) ?? [];
  return parts.map((part) => (/^["']/.test(part) ? part.slice(1, -1) : part));
}

const KEY = `(?:"(?:[^"\\\\\\n]|\\\\.)*"|'[^'\\n]*'|[A-Za-z0-9_-]+)`;
const DOTTED = `${KEY}(?:\\s*\\.\\s*${KEY})*`;
const TABLE_LINE = new RegExp(`^\\s*\\[\\[?\\s*(${DOTTED})\\s*\\]`);
const KEY_LINE = new RegExp(`^\\s*(${DOTTED})\\s*=`);

/** Every table header and key line with its whole path. */
function keyLines(text: string): Map<string, Position> {
  const found = new Map<string, Position>();
  const note = (path: string[], position: Position): void => {
    for (let length = path.length; length > 0; length--) {
      const id = JSON.stringify(path.slice(0, length));
      if (!found.has(id)) found.set(id, position);
    }
  };
  let table: string[] = [];
  for (const [i, line] of text.split("\n").entries()) {
    const position = { line: i + 1, column: line.length - line.trimStart().length + 1 };
    const header = TABLE_LINE.exec(line)?.[1];
    if (header !== undefined) {
      table = dottedKey(header);
      note(table, position);
      continue;
    }
    const key = KEY_LINE.exec(line)?.[1];
    if (key !== undefined) note([...table, ...dottedKey(key)], position);
  }
  return found;
}

/** Plain data of a TOML value: dates as text, no `__proto__`. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => key !== UNSAFE_KEY)
      .map(([key, entry]) => [key, plain(entry)]),
  );
}

/** The text has no BOM. Never throws. */
export function parseTomlText(text: string): ParsedText {
  let value: unknown;
  try {
    value = plain(parse(text));
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
  const lines = keyLines(text);
  const at = (path: readonly string[]): Position => {
    for (let length = path.length; length > 0; length--) {
      const position = lines.get(JSON.stringify(path.slice(0, length)));
      if (position) return position;
    }
    return { line: 1, column: 1 };
  };
  return { document: { value, at, repeated: [] } };
}
