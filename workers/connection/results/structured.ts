/**
 * `structuredContent` (MCP 2025-11-25, server/tools, structured content) and JSON. The model gets structured content once:
 * servers repeat it as text, as the specification asks, and then the text is enough. It gets JSON as TOON (Token-Oriented
 * Object Notation) if that is shorter and loses nothing. A codemode script gets the whole answer of the server, as Pi's
 * built-in MCP gives it, and never a part that looks like the whole: the main thread reads the result in one turn, and Pi
 * hands it on in another, so a result that would block the main thread is stored in a file, and the script gets the path.
 */

import { decode, encode } from "@toon-format/toon";
import type { CallResult, ResultContent } from "../../../src/shared/protocol/calls.ts";
import type { JsonValue } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { formatBytes } from "../../../src/shared/text/amounts.ts";
import { textBlock } from "../../../src/shared/text/clean-blocks.ts";
import { jsonOf, parsedWithoutLoss, sameJson } from "../../shared/json.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { redactValue } from "../secrets/redact.ts";
import { type ShapeOptions, splitLabel } from "./content.ts";

export interface Structured {
  value: unknown;
  /** `value` as JSON, with the server's own numbers. */
  json: string;
}

/** Undefined without structured content; `problem` if it cannot be written as JSON. */
export function readStructured(value: unknown): Structured | { problem: string } | undefined {
  if (value === undefined || value === null) return undefined;
  try {
    return { value, json: jsonOf(value) };
  } catch (error) {
    // V8 gives up on extreme depth.
    return { problem: (error as Error).message };
  }
}

function parsed(text: string): { value: unknown } | undefined {
  const first = text.trimStart().slice(0, 1);
  if (first !== "{" && first !== "[") return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** The text without the label of an embedded resource, and without the fence of a block such as ```json … ``` */
function bare(text: string): string {
  const { body } = splitLabel(text);
  const open = body.indexOf("```");
  const start = body.indexOf("\n", open);
  const end = body.lastIndexOf("```");
  return open === -1 || start === -1 || end <= start ? body : body.slice(start + 1, end).trimEnd();
}

const saysValue = (text: string, value: unknown): boolean => {
  if (typeof value === "string") return text === value;
  if (typeof value !== "object" || value === null) return text === String(value);
  const read = parsed(text);
  return read !== undefined && sameJson(read.value, value);
};

/** The value of the only key: some frameworks wrap a value that is not an object, as `{"result": [...]}`. */
function unwrapped(value: unknown): { value: unknown } | undefined {
  const entries = isObject(value) ? Object.values(value) : [];
  return entries.length === 1 ? { value: entries[0] } : undefined;
}

/** Whether the texts repeat the structured content: one text all of it, or each text one item. */
function textSaysSame(texts: readonly string[], { value, json }: Structured): boolean {
  if (texts.some((text) => text === json || saysValue(text, value))) return true;
  const inner = unwrapped(value);
  if (!inner) return false;
  if (texts.some((text) => saysValue(text, inner.value))) return true;
  const items = inner.value;
  return (
    Array.isArray(items) &&
    items.length > 0 &&
    items.length === texts.length &&
    items.every((item, i) => saysValue(texts[i] ?? "", item))
  );
}

/** The structured content for the model: compact JSON, or nothing if these contents say the same. */
export function structuredForModel(
  structured: Structured,
  contents: readonly ResultContent[],
): ResultContent[] {
  const texts = contents.flatMap((content) => (content.type === "text" ? [content.text] : []));
  const isSaid = textSaysSame(texts, structured) || textSaysSame(texts.map(bare), structured);
  return isSaid ? [] : [textBlock(structured.json)];
}

/** The output guard cuts a longer text anyway, and its file is more useful as JSON. */
const MAX_CHARS = 1024 * 1024;
const MARK = "TOON:\n";
/** Whether `settings.toonEncode` (`true`, or names of servers) asks for it. */
export const toonWanted = (setting: unknown, server: string): boolean =>
  setting === true || (Array.isArray(setting) && setting.includes(server));

/**
 * The text as TOON with a mark, or the text itself if it is not JSON or TOON would not be shorter or not the same. The
 * label of an embedded resource stays before it.
 */
export function toonOr(text: string): string {
  const { label, body: json } = splitLabel(text);
  if (json.length > MAX_CHARS || !/^\s*[[{]/.test(json)) return text;
  try {
    const value: unknown = JSON.parse(json);
    if (!parsedWithoutLoss(json, value)) return text;
    const encoded = `${MARK}${encode(value)}`;
    // JSON escapes half of a surrogate pair and TOON does not: it would not reach the model.
    if (Buffer.byteLength(encoded) >= Buffer.byteLength(json) || !encoded.isWellFormed()) return text;
    return sameJson(decode(encoded.slice(MARK.length)), value) ? `${label}${encoded}` : text;
  } catch {
    // The text is not JSON, is nested too deep, or holds a value that TOON cannot express: it stays as it is.
    return text;
  }
}

/** Measured cost on the main thread of a value, and of a key that no other object has, in addition to their bytes. */
const VALUE_BYTES = 64;
const KEY_BYTES = 256;

/** Cost of the values and keys of a result on the main thread. Counting stops beyond `most`. */
function costOf(root: unknown, most: number): { values: number; costBytes: number } {
  const keys = new Set<string>();
  const open: unknown[] = [root];
  let values = 0;
  const costBytes = (): number => values * VALUE_BYTES + keys.size * KEY_BYTES;
  while (open.length > 0 && costBytes() <= most) {
    const value = open.pop();
    values++;
    if (typeof value !== "object" || value === null) continue;
    if (Array.isArray(value)) {
      // A list that is too long to be counted costs too much.
      if (value.length * VALUE_BYTES > most) return { values: values + value.length, costBytes: most + 1 };
      for (const item of value) open.push(item);
      continue;
    }
    for (const [key, member] of Object.entries(value)) {
      keys.add(key);
      open.push(member);
    }
  }
  return { values, costBytes: costBytes() };
}

type ScriptOptions = Pick<ShapeOptions, "server" | "tool" | "redact" | "store">;

async function tooLarge(
  json: string,
  bytes: number,
  { server, tool, store }: ScriptOptions,
): Promise<Pick<CallResult, "scriptProblem" | "scriptStoredAt">> {
  const saved = await store.save([json], `${server}-${tool}`, "json");
  const where =
    "path" in saved ? `All of it is in ${saved.path}` : `It could not be stored: ${saved.problem}`;
  const most = `at most ${formatBytes(LIMITS.scriptResultBytes)}, and each value counts ${VALUE_BYTES} B more`;
  return {
    scriptProblem: [
      `${server}/${tool} answered ${formatBytes(bytes)} of JSON, which is too much for a script (${most}).`,
      `${where}. The call was carried out: ask for less, or call the tool without a script.`,
    ].join(" "),
    ...("path" in saved ? { scriptStoredAt: saved.path } : {}),
  };
}

/** JSON of a result, with the server's own numbers in its structured content. */
function jsonOfResult({ structuredContent, ...rest }: Partial<CallToolResult>): string {
  if (structuredContent === undefined) return JSON.stringify(rest);
  return `${JSON.stringify(rest).slice(0, -1)},"structuredContent":${jsonOf(structuredContent)}}`;
}

/** Empty if the result cannot be written as JSON. */
export async function forScript(
  { _meta, ...result }: CallToolResult,
  options: ScriptOptions,
): Promise<Pick<CallResult, "scriptResult" | "scriptProblem" | "scriptStoredAt">> {
  const content = Array.isArray(result.content) ? result.content : [];
  const whole = { ...result, content };
  let json: string;
  let shown: unknown = whole;
  try {
    if (result.isError === true) shown = redactValue(whole as unknown as JsonValue, options.redact);
    json = jsonOfResult(shown as Partial<CallToolResult>);
  } catch {
    // V8 gives up on extreme depth. The script then gets the text.
    return {};
  }
  const bytes = Buffer.byteLength(json);
  const left = LIMITS.scriptResultBytes - bytes;
  if (left < 0 || costOf(shown, left).costBytes > left) return tooLarge(json, bytes, options);
  return { scriptResult: new TextEncoder().encode(json) };
}
