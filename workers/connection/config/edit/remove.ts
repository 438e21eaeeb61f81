/**
 * Takes one property out of a JSONC text as its owner would: with its comma, and with its lines if it has lines of its
 * own. A comment beside it goes with it; all other comments and the formatting stay. Pure.
 */
import * as jsonc from "jsonc-parser";

const endOf = ({ offset, length }: jsonc.Node): number => offset + length;

/** The offset of the comma between two places, of which none stands in a comment. */
function commaBetween(text: string, start: number, end: number): number | undefined {
  const scanner = jsonc.createScanner(text.slice(start, end), true);
  for (let token = scanner.scan(); token !== jsonc.SyntaxKind.EOF; token = scanner.scan()) {
    if (token === jsonc.SyntaxKind.CommaToken) return start + scanner.getTokenOffset();
  }
  return undefined;
}

const without = (text: string, start: number, end: number): string => text.slice(0, start) + text.slice(end);

/** Blanks and whole comments up to the end of the line. */
const REST_OF_LINE = /^[ \t]*(?:\/\*(?:(?!\*\/)[^\r\n])*\*\/[ \t]*)*(?:\/\/[^\r\n]*)?(?:\r?\n|$)/;

/** The range of whole lines that hold nothing but the property, its comma and comments beside it. */
function ownLines(text: string, start: number, end: number): [number, number] | undefined {
  const lineStart = text.lastIndexOf("\n", start - 1) + 1;
  const rest = REST_OF_LINE.exec(text.slice(end));
  if (text.slice(lineStart, start).trim() !== "" || !rest || !rest[0].includes("\n")) return undefined;
  return [lineStart, end + rest[0].length];
}

function removeProperty(text: string, object: jsonc.Node, at: number): string {
  const properties = object.children ?? [];
  const property = properties[at] as jsonc.Node;
  const [previous, next] = [properties[at - 1], properties[at + 1]];
  const limit = next ? next.offset : endOf(object) - 1;
  const comma = commaBetween(text, endOf(property), limit);
  const end = comma === undefined ? endOf(property) : comma + 1;
  const lines = ownLines(text, property.offset, end);
  if (lines) {
    const shorter = without(text, ...lines);
    // The last property had no comma, so the one before it may not have one either.
    if (next || comma !== undefined || !previous) return shorter;
    const before = commaBetween(text, endOf(previous), property.offset);
    return before === undefined ? shorter : without(shorter, before, before + 1);
  }
  if (next) {
    const isBeside = !text.slice(end, next.offset).includes("\n");
    return without(text, property.offset, isBeside ? next.offset : end);
  }
  if (!previous) {
    const inside = without(
      text.slice(object.offset + 1, limit),
      property.offset - object.offset - 1,
      end - object.offset - 1,
    );
    return inside.trim() === ""
      ? without(text, object.offset + 1, limit)
      : without(text, property.offset, end);
  }
  return withoutLast(text, endOf(previous), property.offset, end);
}

/** Without the last property, which shares its line, and without the comma before it. */
function withoutLast(text: string, previousEnd: number, start: number, end: number): string {
  const comma = commaBetween(text, previousEnd, start) ?? start;
  if (text.slice(comma + 1, start).trim() === "") return without(text, comma, end);
  // Comments stand between the comma and the property, and stay.
  return without(without(text, start, end), comma, comma + 1);
}

/** The text without the value at `path`, however often its last key is given. `text` must be valid JSONC. */
export function removeValue(text: string, path: readonly [...string[], string]): string {
  let shorter = text;
  for (;;) {
    let object = jsonc.parseTree(shorter, [], { allowTrailingComma: true });
    for (const key of path.slice(0, -1)) {
      const property: jsonc.Node | undefined = object?.children?.findLast(
        ({ children }) => children?.[0]?.value === key,
      );
      object = property?.children?.[1];
    }
    const at = object?.children?.findIndex(({ children }) => children?.[0]?.value === path.at(-1)) ?? -1;
    if (object?.type !== "object" || at === -1) return shorter;
    shorter = removeProperty(shorter, object, at);
  }
}

/** The text without the item at a position of the list at `path`; unchanged without such an item. */
export function removeItem(text: string, path: readonly string[], at: number): string {
  const root = jsonc.parseTree(text, [], { allowTrailingComma: true });
  const list = root && jsonc.findNodeAtLocation(root, [...path]);
  return list?.type === "array" && list.children?.[at] ? removeProperty(text, list, at) : text;
}
