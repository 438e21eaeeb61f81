/**
 * Turns text of a server into JSON-RPC messages. This is the only place that parses such text: a short one in the
 * connection worker, a long one in a thread of its own (heavy.ts). A long text is measured first, and refused if it has
 * more values than a heap can hold: `JSON.parse` is native and cannot be stopped, and a heap that becomes full in it ends
 * the whole of Pi. How long the text may take is bounded by time alone. Also tells the kinds of messages apart, loosely, and
 * mends what the SDK's client would refuse as a whole for a part that nobody reads.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { isObject } from "../../../src/shared/protocol/values.ts";
import { keepSource } from "../../shared/json.ts";
import type { JSONRPCErrorResponse, JSONRPCMessage, JSONRPCRequest, RequestId } from "../mcp/wire/wire.ts";
import { type TooLarge, tooDeep, tooManyMessages, tooManyValues, unaskedTooLong } from "./too-large.ts";

interface JsonSize {
  /** About the number of keys, scalars and containers, counted by separators. Empty containers count twice. */
  values: number;
  depth: number;
  /** Text of the outermost object's `id`; undefined if there is none or it is too long. */
  id: string | undefined;
  /** The outermost object has a `method` that is not null: it is a request or a notification. */
  hasMethod: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Meanings of a byte outside of strings. */
const PLAIN = 0;
const SEPARATOR = 1;
const OPEN = 2;
const CLOSE = 3;
const STRING = 4;
const KIND = new Uint8Array(256);
KIND[COLON] = SEPARATOR;
KIND[0x2c] = SEPARATOR;
KIND[0x5b] = OPEN;
KIND[0x7b] = OPEN;
KIND[0x5d] = CLOSE;
KIND[0x7d] = CLOSE;
KIND[QUOTE] = STRING;

/** Bytes of a string that are read one by one before the next quote is searched: a search has a cost of its own. */
const STEP_BYTES = 128;
/** `method` with each character as an escape of six bytes, and both quotes. */
const KEY_BYTES = 40;
const ID_BYTES = 200;
const NULL = /^\s*null/;

/** A key as it reads: JSON may write any character of it as an escape (RFC 8259, section 7). */
function keyOf(text: string): string {
  if (!text.includes("\\")) return text;
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text;
  }
}

/** Position of the quote that ends the string with its first byte at `start`, or the length of the text. */
function endOfString(bytes: Buffer, start: number): number {
  let at = start;
  while (true) {
    const stop = Math.min(bytes.length, at + STEP_BYTES);
    while (at < stop) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      at += byte === BACKSLASH ? 2 : 1;
    }
    if (at >= bytes.length) return bytes.length;
    // No backslash stands before `at`, so the backslashes before the next quote say whether that quote ends the string.
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return bytes.length;
    let first = quote;
    while (first > at && bytes[first - 1] === BACKSLASH) first--;
    if ((quote - first) % 2 === 0) return quote;
    at = quote + 1;
  }
}

export function measureJson(bytes: Buffer): JsonSize {
  let values = 0;
  let depth = 0;
  let deepest = 0;
  let hasMethod = false;
  let id: string | undefined;
  /** The last string of the outermost object, if it is short enough to be `id` or `method`. */
  let word = "";
  let idFrom = -1;
  let at = 0;

  /** A key or a value of the outermost object ends here. */
  const onOutermost = (): void => {
    if (idFrom !== -1) {
      id = at - idFrom <= ID_BYTES ? bytes.toString("utf8", idFrom, at).trim() : undefined;
      idFrom = -1;
    }
    if (bytes[at] !== COLON) return;
    const key = keyOf(word);
    if (key === "id") idFrom = at + 1;
    if (key === "method") hasMethod ||= !NULL.test(bytes.toString("latin1", at + 1, at + KEY_BYTES));
  };

  while (at < bytes.length) {
    const kind = KIND[bytes[at] ?? 0];
    if (kind === PLAIN) {
      at++;
    } else if (kind === STRING) {
      const end = endOfString(bytes, at + 1);
      if (depth === 1) word = end - at <= KEY_BYTES ? bytes.toString("latin1", at + 1, end) : "";
      at = end + 1;
    } else {
      if (depth === 1 && kind !== OPEN) onOutermost();
      if (kind === CLOSE) depth--;
      else values++;
      if (kind === OPEN && ++depth > deepest) deepest = depth;
      at++;
    }
  }
  return { values, depth: deepest, id, hasMethod };
}

export const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest =>
  "method" in message && "id" in message && message.id !== undefined;

/** A result or an error, which answers a request. */
type JSONRPCAnswer = Exclude<JSONRPCMessage, { method: string }>;

export const isAnswer = (message: JSONRPCMessage): message is JSONRPCAnswer =>
  "result" in message || "error" in message;

/** Id of the request that a `notifications/cancelled` takes back; undefined for any other message. */
export function cancelledRequest(message: JSONRPCMessage): RequestId | undefined {
  if (!("method" in message) || message.method !== "notifications/cancelled") return undefined;
  return (message.params as { requestId?: RequestId } | undefined)?.requestId;
}

/** A longer text goes to the thread. One of this length takes some milliseconds, whatever it holds. */
export const LONG_BYTES = 256 * 1024;

export type Incoming =
  | { kind: "messages"; messages: JSONRPCMessage[] }
  /** Not JSON, or JSON that is not a JSON-RPC message. */
  | { kind: "noise" }
  /** A long answer to no open request, for example to a request that was cancelled. */
  | { kind: "stray"; id: RequestId }
  /** `id`: the request that the message answers, if that is known. */
  | { kind: "refused"; error: TooLarge; id: RequestId | undefined };

interface IncomingOptions {
  /** Whether several messages may come as one array (MCP 2025-03-26, basic/transports, over HTTP only). */
  batches: boolean;
}

/**
 * JSON-RPC 2.0, section 4: an id is a string, a number or null. Any other value is refused here: an object may have a
 * `toString` that is not a function, and then the first use of it as a number or a text throws.
 */
const isId = (id: unknown): boolean =>
  id === undefined || id === null || typeof id === "string" || typeof id === "number";

/** Some servers write null for a member that they leave out. */
const isName = (method: unknown): boolean =>
  method === undefined || method === null || typeof method === "string";

const isMessage = (value: unknown): value is JSONRPCMessage =>
  isObject(value) && value.jsonrpc === "2.0" && isId(value.id) && isName(value.method);

const drop = (from: Record<string, unknown>, key: string): void => void Reflect.deleteProperty(from, key);

function dropNulls(from: Record<string, unknown>): void {
  for (const key in from) if (from[key] === null) drop(from, key);
}

const MEMBERS = new Set(["jsonrpc", "id", "method", "params", "result", "error"]);
/** JSON-RPC 2.0, section 5.1: an internal error, for one whose own code is none. */
const NO_CODE = -32_603;
const NO_ANSWER = "the answer is not one of JSON-RPC 2.0";

/** The error as it came if it is one (JSON-RPC 2.0, section 5.1), else one that says so, with the server's own words. */
function soundError(error: unknown): unknown {
  const { code, message, data } = isObject(error) ? error : { message: error };
  if (Number.isSafeInteger(code) && typeof message === "string") return error;
  return {
    code: Number.isSafeInteger(code) ? code : NO_CODE,
    message: typeof message === "string" ? `${NO_ANSWER}: ${message}` : NO_ANSWER,
    data: data ?? (isObject(error) ? error : undefined),
  };
}

function mendAnswer(answer: Record<string, unknown>): void {
  const { result, error } = answer;
  drop(answer, "params");
  drop(answer, isObject(result) ? "error" : "result");
  // Nobody reads `_meta` of a result, and the SDK refuses the whole answer for an odd one.
  if (isObject(result)) drop(result, "_meta");
  else answer.error = soundError(error);
}

function mendRequest(request: Record<string, unknown>): void {
  const { method, params } = request;
  drop(request, "result");
  drop(request, "error");
  if (!isObject(params)) {
    drop(request, "params");
    return;
  }
  if (method === "notifications/progress") dropNulls(params);
  if (isObject(params._meta)) dropNulls(params._meta);
  else drop(params, "_meta");
}

/**
 * Makes a message one that the SDK's client takes, in place: its schemas refuse all of it for a member that JSON-RPC does not
 * have, or for a null in place of a member that is left out. The request that the message answers would then wait until its
 * time is over. So an answer that holds no result becomes an error.
 */
function mend(message: Record<string, unknown>): void {
  for (const key in message) if (message[key] === null || !MEMBERS.has(key)) drop(message, key);
  if (message.method !== undefined) mendRequest(message);
  else if (message.id !== undefined) mendAnswer(message);
}

const NOISE: Incoming = { kind: "noise" };
/** White space in front of a message that is looked through. */
const START_BYTES = 100;
const [OPENS_OBJECT, OPENS_LIST, SPACE] = [0x7b, 0x5b, 0x20];

/** Whether the text begins as a message does. All else is dropped without being parsed: an error costs more than a message. */
export function mayBeMessage(bytes: Buffer, { batches }: IncomingOptions): boolean {
  let at = 0;
  while (at < START_BYTES && (bytes[at] ?? OPENS_OBJECT) <= SPACE) at++;
  return at === START_BYTES || bytes[at] === OPENS_OBJECT || (batches && bytes[at] === OPENS_LIST);
}

const refused = (error: TooLarge, id?: RequestId): Incoming => ({ kind: "refused", error, id });

const STRUCTURED = "structuredContent";

/**
 * Results for scripts may hold 64-bit integers. No revision of MCP has both them and batches. The state of a task holds its result
 * (MCP 2026-07-28, extension io.modelcontextprotocol/tasks).
 */
function keepNumbers(text: string, message: unknown): void {
  const result = isObject(message) ? message.result : undefined;
  for (const one of isObject(result) ? [result, result.result] : []) {
    const structured = isObject(one) ? one[STRUCTURED] : undefined;
    if (typeof structured === "object" && structured !== null) keepSource(text, STRUCTURED, structured);
  }
}

function parse(bytes: Buffer, { batches }: IncomingOptions): Incoming {
  const text = bytes.toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return NOISE;
  }
  keepNumbers(text, value);
  const messages = batches && Array.isArray(value) ? value : [value];
  if (messages.length > LIMITS.batchMessages) return refused(tooManyMessages(messages.length));
  if (!messages.every(isMessage)) return NOISE;
  for (const message of messages) mend(message);
  if (!messages.some((message) => "method" in message)) return { kind: "messages", messages };
  if (bytes.length > LIMITS.unaskedBytes) return refused(unaskedTooLong(bytes.length, LIMITS.unaskedBytes));
  // Answers may nest to any depth: every reader of them either does not recurse or survives a full stack.
  const depth = bytes.length > LIMITS.unaskedDepth ? measureJson(bytes).depth : 0;
  return depth > LIMITS.unaskedDepth ? refused(tooDeep(depth)) : { kind: "messages", messages };
}

interface LongOptions extends IncomingOptions {
  /** Our open requests: ids as texts, and their methods. */
  asked: ReadonlyMap<string, string>;
  /** Gets the request that the message answers, before the message is parsed. */
  onId: (id: RequestId) => void;
}

function readId(text: string | undefined): RequestId | undefined {
  if (text === undefined) return undefined;
  try {
    const id: unknown = JSON.parse(text);
    return typeof id === "number" || typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a long text, in the thread for it. */
export function readLong(bytes: Buffer, options: LongOptions): Incoming {
  const { values, depth, hasMethod, id: idText } = measureJson(bytes);
  const id = hasMethod ? undefined : readId(idText);
  if (id !== undefined && !options.asked.has(String(id))) return { kind: "stray", id };
  if (id !== undefined) options.onId(id);
  if (hasMethod && bytes.length > LIMITS.unaskedBytes)
    return refused(unaskedTooLong(bytes.length, LIMITS.unaskedBytes));
  if (hasMethod && depth > LIMITS.unaskedDepth) return refused(tooDeep(depth));
  if (values > LIMITS.messageValues) return refused(tooManyValues(values), id);
  return parse(bytes, options);
}

let readSoFar = 0;

/** Length of all messages that this thread has read or handed on so far. */
export const bytesRead = (): number => readSoFar;
export const countRead = (bytes: number): void => {
  readSoFar += bytes;
};

/** Reads a text of at most `LONG_BYTES`. */
export function readShort(bytes: Buffer, options: IncomingOptions): Incoming {
  countRead(bytes.length);
  return mayBeMessage(bytes, options) ? parse(bytes, options) : NOISE;
}

/** JSON-RPC 2.0 leaves the codes from -32000 to -32099 to implementations. */
const REFUSED = -32_000;

/**
 * The answer that the request gets in place of the refused one. `data` is the error object itself, which no server can
 * send: the caller of the request recognizes a refusal by that.
 */
export const refusalOf = (id: RequestId, error: TooLarge): JSONRPCErrorResponse => ({
  jsonrpc: "2.0",
  id,
  error: { code: REFUSED, message: error.message, data: error },
});
