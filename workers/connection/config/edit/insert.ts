/**
 * Puts one value into a JSONC text as its owner would have written it: on the line of its neighbours, or on a line of
 * its own if they have one each, with their indentation, spaces and line ends. Nothing else in the text changes. Pure.
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
