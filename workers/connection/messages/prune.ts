/**
 * What the connection worker gets of a message that was parsed in the thread for long messages: so little that taking it
 * over holds no other server up. A result for a model or a person stays in the thread until it is shaped there; a list
 * comes as items that are checked already, in pieces; of all else the parts come that are read at all. Pure.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import {
  type CachedTool,
  normalizePrompts,
  normalizeResources,
  normalizeTemplates,
  normalizeTools,
  unboundedTools,
} from "../../shared/listed.ts";
import { normalizeSkill, normalizeSkills } from "../../shared/skills.ts";
import type { JSONRPCMessage } from "../mcp/wire/wire.ts";

/** Keys and values that are kept of a message. The largest that is read, a question to the user, has some hundred. */
export const KEPT_VALUES = 5_000;
/** Of one object or list, so that no other one beside it is left out. */
const KEPT_ITEMS = 1_000;
const KEPT_DEPTH = 64;
const KEY_CHARS = 1_000;
/** One more character than any reader takes, so that each still finds a longer text too long. */
export const KEPT_TEXT_CHARS = 1024 * 1024 + 1;
/** Of all texts together: two of the longest, and the instructions of a server beside them. */
const KEPT_CHARS = 3 * KEPT_TEXT_CHARS;

/** Bytes of one piece of a list, which takes about a millisecond to read. */
const PIECE_BYTES = 64 * 1024;
/** Items of other lists than that of the tools. Of these at most 200 become tools or commands. */
const ITEMS = 1_000;
const NOTED_TOOLS = 20;
const NAMED_TOOLS = 100;

export interface Pruned {
  /** JSON of the message, without the items and without a result that stays in the thread. */
  json: string;
  /** Items of the list `field` of the result: each piece is a JSON list in UTF-8. */
  items?: { field: string; pieces: Uint8Array<ArrayBuffer>[] };
  /** The result stays in the thread: that of the message, or the result of the task that the message is about. */
  held?: "result" | "task";
  /** Lines about odd items. */
  notes?: string[];
  /** The length of the error's message, of which the JSON has only the beginning. */
  errorChars?: number;
}

/** The `data` of an error whose message is longer than what arrives of it. No server can send one. */
export class LongErrorData {
  readonly messageChars: number;
  readonly data: unknown;

  constructor(messageChars: number, data: unknown) {
    this.messageChars = messageChars;
    this.data = data;
  }
}

/** The error of a message: its own, or that of the task that it tells about. */
export function errorOf(message: object): Record<string, unknown> | undefined {
  const { error, result } = message as Record<string, unknown>;
  const found = error ?? (isObject(result) ? result.error : undefined);
  return isObject(found) ? found : undefined;
}

/** A copy of the first keys and values of a JSON value, level by level, so that no nested one takes the place of others. */
export function bounded(root: unknown): unknown {
  let values = 0;
  let chars = 0;
  let level: [source: object, target: object][] = [];
  const copyOf = (value: unknown): unknown => {
    values++;
    if (typeof value === "string") {
      const kept = value.slice(0, Math.min(KEPT_TEXT_CHARS, Math.max(0, KEPT_CHARS - chars)));
      chars += kept.length;
      return kept;
    }
    if (typeof value !== "object" || value === null) return value;
    const target = Array.isArray(value) ? [] : {};
    next.push([value, target]);
    return target;
  };
  let next: typeof level = [];
  const copy = copyOf(root);
  for (let depth = 0; next.length > 0 && depth < KEPT_DEPTH; depth++) {
    [level, next] = [next, []];
    for (const [source, target] of level) {
      let items = 0;
      for (const key in source) {
        if (values >= KEPT_VALUES) return copy;
        if (++items > KEPT_ITEMS) break;
        // The key of a prototype is own in JSON, and no reader wants it.
        if (key.length > KEY_CHARS || key === "__proto__") continue;
        Reflect.set(target, key, copyOf(Reflect.get(source, key)));
      }
    }
  }
  return copy;
}

/** Tools beyond the limits of a list by their names alone, and some of those at all: a note names them. */
function namedBeyond(tools: readonly CachedTool[]): CachedTool[] {
  let chars = 0;
  return tools.slice(0, LIMITS.toolsPerServer + NAMED_TOOLS).map((tool, index) => {
    if (index >= LIMITS.toolsPerServer || chars > LIMITS.listBytes) return { name: tool.name };
    chars += JSON.stringify(tool).length;
    return tool;
  });
}

const LISTS: Record<string, { field: string; read: (raw: unknown) => unknown[] }> = {
  "tools/list": { field: "tools", read: (raw) => namedBeyond(normalizeTools(raw)) },
  "resources/list": { field: "resources", read: (raw) => normalizeResources(raw).slice(0, ITEMS) },
  "resources/templates/list": {
    field: "resourceTemplates",
    read: (raw) => normalizeTemplates(raw).slice(0, ITEMS),
  },
  "skills/list": {
    field: "skills",
    read: (raw) => normalizeSkills(raw).slice(0, LIMITS.skillsPerServer + 1),
  },
  "prompts/list": { field: "prompts", read: (raw) => normalizePrompts(raw).slice(0, ITEMS) },
};

/** Requests whose results a model or a person reads. */
const SHAPED = new Set(["tools/call", "resources/read", "prompts/get"]);

function inPieces(items: readonly unknown[]): Uint8Array<ArrayBuffer>[] {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const encoder = new TextEncoder();
  let texts: string[] = [];
  let chars = 0;
  const flush = (): void => {
    if (texts.length > 0) pieces.push(encoder.encode(`[${texts.join(",")}]`));
    texts = [];
    chars = 0;
  };
  for (const item of items) {
    const text = JSON.stringify(item);
    if (chars + text.length > PIECE_BYTES) flush();
    texts.push(text);
    chars += text.length;
  }
  flush();
  return pieces;
}

function notesOn(tools: unknown): string[] {
  const listed = Array.isArray(tools) ? tools.length : 0;
  const unbounded = unboundedTools(tools).slice(0, NOTED_TOOLS);
  return [
    ...(listed > LIMITS.toolsPerServer ? [`lists ${listed.toLocaleString("en")} tools at once`] : []),
    ...(unbounded.length > 0
      ? [`schemas left out, too deep or too big: ${unbounded.join(", ").slice(0, KEY_CHARS)}`]
      : []),
  ];
}

function pruneResult(message: { result: Record<string, unknown> }, method: string): Pruned | undefined {
  const { result, ...envelope } = message;
  const list = LISTS[method];
  if (list) {
    const { [list.field]: raw, ...rest } = result;
    return {
      json: JSON.stringify(bounded({ ...envelope, result: rest })),
      items: { field: list.field, pieces: inPieces(list.read(raw)) },
      notes: method === "tools/list" ? notesOn(raw) : [],
    };
  }
  if (method === "skills/get") {
    const { skill, ...rest } = result;
    const kept = bounded({ ...envelope, result: rest }) as { result: object };
    return { json: JSON.stringify({ ...kept, result: { ...kept.result, skill: normalizeSkill(skill) } }) };
  }
  const { resultType } = result;
  if (SHAPED.has(method) && (resultType === undefined || resultType === "complete"))
    return { json: JSON.stringify({ ...envelope, result: { resultType } }), held: "result" };
  if (method !== "tasks/get" || !isObject(result.result)) return undefined;
  const task = { ...result, result: {} };
  return { json: JSON.stringify(bounded({ ...envelope, result: task })), held: "task" };
}

/** `method`: of the request that the message answers; undefined for any other message. */
export function prune(message: JSONRPCMessage, method: string | undefined): Pruned {
  const isResult = "result" in message && isObject(message.result) && method !== undefined;
  const pruned = isResult ? pruneResult(message as never, method) : undefined;
  if (pruned) return pruned;
  const json = JSON.stringify(bounded(message));
  const said = errorOf(message)?.message;
  return typeof said === "string" && said.length > KEPT_TEXT_CHARS
    ? { json, errorChars: said.length }
    : { json };
}
