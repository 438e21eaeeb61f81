/**
 * Turns text of a server into JSON-RPC messages. This is the only place that parses such text: a short one in the
 * connection worker, a long one in a thread of its own (heavy.ts). A long text is measured first, and refused if it has
 * more values than a heap can hold: `JSON.parse` is native and cannot be stopped, and a heap that becomes full in it ends
 * the whole of Pi. How long the text may take is bounded by time alone.
 */
import { isObject } from "../../../src/shared/protocol/is-object.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { keepSource } from "../../shared/json.ts";
import type { JSONRPCErrorResponse, JSONRPCMessage, RequestId } from "../mcp/wire/wire.ts";
import { measureJson } from "./json-size.ts";
import { type TooLarge, tooDeep, tooManyMessages, tooManyValues, unaskedTooLong } from "./too-large.ts";

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

export interface IncomingOptions {
  /** Whether several messages may come as one array (MCP 2025-03-26, basic/transports, over HTTP only). */
  batches: boolean;
}

/**
 * JSON-RPC 2.0, section 4: an id is a string, a number or null. Any other value is refused here: an object may have a
 * `toString` that is not a function, and then the first use of it as a number or a text throws.
 */
const isId = (id: unknown): boolean =>
  id === undefined || id === null || typeof id === "string" || typeof id === "number";

export const isMessage = (value: unknown): value is JSONRPCMessage => {
  if (typeof value !== "object" || value === null) return false;
  const { jsonrpc, id } = value as { jsonrpc?: unknown; id?: unknown };
  return jsonrpc === "2.0" && isId(id);
};

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

/** Results for scripts may hold 64-bit integers. No revision of MCP has both them and batches. */
function keepNumbers(text: string, message: unknown): void {
  const result = isObject(message) ? message.result : undefined;
  const structured = isObject(result) ? result[STRUCTURED] : undefined;
  if (typeof structured === "object" && structured !== null) keepSource(text, STRUCTURED, structured);
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
  if (!messages.some((message) => "method" in message)) return { kind: "messages", messages };
  if (bytes.length > LIMITS.unaskedBytes) return refused(unaskedTooLong(bytes.length, LIMITS.unaskedBytes));
  // Answers may nest to any depth: every reader of them either does not recurse or survives a full stack.
  const depth = bytes.length > LIMITS.unaskedDepth ? measureJson(bytes).depth : 0;
  return depth > LIMITS.unaskedDepth ? refused(tooDeep(depth)) : { kind: "messages", messages };
}

export interface LongOptions extends IncomingOptions {
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
