/**
 * Changes one value in a JSONC text as its owner would. A new one comes on the line of its neighbours, or on a line of its
 * own if they have one each, with their indentation, spaces and line ends. One that goes takes its comma, its own lines and
 * the comment beside it along. Nothing else in the text changes, which jsonc-parser's own edits do not hold. Pure.
 */
import * as jsonc from "jsonc-parser";

export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** Lists stay on one line up to this length. */
const LINE_CHARS = 100;

interface Style {
  eol: string;
  /** One level of indentation. */
  unit: string;
  /** What stands behind a comma and a colon on one line: a space or nothing. */
  gap: string;
  /** What stands inside the braces of an object on one line: a space or nothing. */
  pad: string;
}

/** The last property of that name, which counts, as in `JSON.parse`. */
const propertyOf = (object: jsonc.Node, key: string): jsonc.Node | undefined =>
  object.children?.findLast((property) => property.children?.[0]?.value === key);

const endOf = ({ offset, length }: jsonc.Node): number => offset + length;

const lineStart = (text: string, offset: number): number => text.lastIndexOf("\n", offset - 1) + 1;

/** The whitespace before the first word of the line. */
const indentAt = (text: string, offset: number): string =>
  /^[ \t]*/.exec(text.slice(lineStart(text, offset)))?.[0] ?? "";

const startsItsLine = (text: string, offset: number): boolean =>
  text.slice(lineStart(text, offset), offset).trim() === "";

function styleOf(text: string): Style {
  const colon = /"\s*:([ \t]*)\S/.exec(text)?.[1];
  return {
    eol: text.includes("\r\n") ? "\r\n" : "\n",
    unit: /^([ \t]+)\S/m.exec(text)?.[1] ?? "  ",
    gap: colon === "" ? "" : " ",
    pad: /\{[ \t]+"/.test(text) ? " " : "",
  };
}

const property = (key: string, value: string, gap: string): string => `${JSON.stringify(key)}:${gap}${value}`;

const isList = (value: Plain): value is readonly Plain[] => Array.isArray(value);

function onOneLine(value: Plain, { gap, pad }: Pick<Style, "gap" | "pad">): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (isList(value)) return `[${value.map((item) => onOneLine(item, { gap, pad })).join(`,${gap}`)}]`;
  const entries = Object.entries(value).map(([key, below]) =>
    property(key, onOneLine(below, { gap, pad }), gap),
  );
  if (entries.length === 0) return "{}";
  return `{${pad}${entries.join(`,${gap}`)}${pad}}`;
}

/** `indent`: the indentation of the line where the value begins. */
function onLines(value: Plain, indent: string, style: Pick<Style, "eol" | "unit">): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const { eol, unit } = style;
  const inner = indent + unit;
  if (isList(value)) {
    const line = onOneLine(value, { gap: " ", pad: "" });
    if (indent.length + line.length <= LINE_CHARS) return line;
    return ["[", value.map((item) => inner + onLines(item, inner, style)).join(`,${eol}`), `${indent}]`].join(
      eol,
    );
  }
  const entries = Object.entries(value).map(
    ([key, below]) => inner + property(key, onLines(below, inner, style), " "),
  );
  return ["{", entries.join(`,${eol}`), `${indent}}`].join(eol);
}

const splice = (text: string, start: number, end: number, added: string): string =>
  text.slice(0, start) + added + text.slice(end);

/** Puts a value in the place of another one: an object has lines of its own if the old value has. */
function replaceValue(text: string, property: jsonc.Node, found: jsonc.Node, value: Plain): string {
  const old = text.slice(found.offset, endOf(found));
  const style = styleOf(text);
  const isObject = typeof value === "object" && value !== null && !isList(value);
  const hasLines = old.includes("\n");
  const written =
    isObject && hasLines ? onLines(value, indentAt(text, property.offset), style) : onOneLine(value, style);
  return splice(text, found.offset, endOf(found), written);
}

/** Inserts on the next line behind a property that begins its line. A comment beside that property stays beside it. */
function insertLine(text: string, last: jsonc.Node, added: string, { eol }: Style): string {
  const end = endOf(last);
  const line = eol + indentAt(text, last.offset) + added;
  const comment = /^([ \t]*)(,?)([ \t]*(?:\/\/[^\r\n]*|\/\*(?:(?!\*\/)[^\r\n])*\*\/[ \t]*))(?=\r?\n|$)/.exec(
    text.slice(end),
  );
  if (!comment) return splice(text, end, end, `,${line}`);
  const [whole, before = "", comma = "", rest = ""] = comment;
  return splice(text, end, end + whole.length, `,${before}${rest}${line}${comma}`);
}

/** Inserts into an object without properties, which may hold comments. */
function insertFirst(text: string, object: jsonc.Node, key: string, value: Plain, style: Style): string {
  const close = endOf(object) - 1;
  const indent = indentAt(text, object.offset);
  const inner = indent + style.unit;
  const added = inner + property(key, onLines(value, inner, style), " ");
  const inside = text.slice(object.offset + 1, close);
  if (inside.includes("\n")) {
    const lineEnd = object.offset + 1 + inside.replace(/\r?\n[ \t]*$/, "").length;
    return splice(text, lineEnd, lineEnd, style.eol + added);
  }
  // An object that shares its line with others stays on it. A file that is only `{}` gets lines of its own.
  const isOneLine = text.trim().slice(1, -1).trim() !== "" && !text.trim().includes("\n");
  if (inside.trim() !== "" || isOneLine) {
    const start = object.offset + 1 + inside.trimEnd().length;
    const pad = inside.trim() === "" ? style.pad : " ";
    return splice(text, start, close, pad + property(key, onOneLine(value, style), style.gap) + pad);
  }
  return splice(text, object.offset + 1, close, style.eol + added + style.eol + indent);
}

/** The style of one property, which may differ from that of the text. */
function styleBeside(text: string, last: jsonc.Node): Style {
  const style = styleOf(text);
  const [key, value] = last.children ?? [];
  if (!key || !value) return style;
  const gap = /:\s/.test(text.slice(endOf(key), value.offset)) ? " " : "";
  const pad = value.children?.length ? (/^\{[ \t]/.test(text.slice(value.offset)) ? " " : "") : style.pad;
  return { ...style, gap, pad };
}

/** Whether the value of the property is an object on one line. */
const isObjectOnLine = (text: string, last: jsonc.Node): boolean =>
  last.children?.[1]?.type === "object" && !text.slice(last.offset, endOf(last)).includes("\n");

function insertAfter(text: string, last: jsonc.Node, key: string, value: Plain): string {
  const style = styleBeside(text, last);
  const { gap } = style;
  const line = property(key, onOneLine(value, style), gap);
  if (!startsItsLine(text, last.offset)) return splice(text, endOf(last), endOf(last), `,${gap}${line}`);
  const lines = property(key, onLines(value, indentAt(text, last.offset), style), " ");
  return insertLine(
    text,
    last,
    typeof value !== "object" || value === null || isObjectOnLine(text, last) ? line : lines,
    style,
  );
}

/** Sets the value at `path`. `text` must be valid JSONC, and every value on the way to `path` an object or absent. */
export function setValue(text: string, path: readonly string[], value: Plain): string {
  const root = jsonc.parseTree(text, [], { allowTrailingComma: true });
  if (!root) throw new Error("not valid JSONC");
  let object = root;
  for (const [depth, key] of path.entries()) {
    const property = propertyOf(object, key);
    const found = property?.children?.[1];
    const isLast = depth === path.length - 1;
    if (property && found && isLast) return replaceValue(text, property, found, value);
    if (found) {
      object = found;
      continue;
    }
    const added = path.slice(depth + 1).reduceRight<Plain>((below, name) => ({ [name]: below }), value);
    const last = object.children?.at(-1);
    return last ? insertAfter(text, last, key, added) : insertFirst(text, object, key, added, styleOf(text));
  }
  return text;
}

/** Adds items behind the last one of the list at `path`, which has at least one: beside it, or on lines as it has. */
export function appendItems(text: string, path: readonly string[], items: readonly Plain[]): string {
  const root = jsonc.parseTree(text, [], { allowTrailingComma: true });
  const list = root && jsonc.findNodeAtLocation(root, [...path]);
  const last = list?.type === "array" ? list.children?.at(-1) : undefined;
  if (!last) throw new Error("no list with an item");
  const { eol, gap } = styleOf(text);
  const between = startsItsLine(text, last.offset) ? eol + indentAt(text, last.offset) : gap;
  const added = items.map((item) => `,${between}${onOneLine(item, { gap, pad: "" })}`).join("");
  return splice(text, endOf(last), endOf(last), added);
}

/** The offset of the comma between two places, of which none stands in a comment. */
function commaBetween(text: string, start: number, end: number): number | undefined {
  const scanner = jsonc.createScanner(text.slice(start, end), true);
  for (let token = scanner.scan(); token !== jsonc.SyntaxKind.EOF; token = scanner.scan()) {
    if (token === jsonc.SyntaxKind.CommaToken) return start + scanner.getTokenOffset();
  }
  return undefined;
}

const without = (text: string, start: number, end: number): string => splice(text, start, end, "");

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
    for (const key of path.slice(0, -1)) object = object && propertyOf(object, key)?.children?.[1];
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
