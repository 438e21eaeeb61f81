/**
 * Turns what a server sent into JSON-RPC messages, the one place where such text is parsed. A long text is measured
 * first, and refused where it would cost more than the limits or than the memory that is left: `JSON.parse` is
 * native, cannot be stopped, and a heap that is full within it ends the whole of Pi.
 */
import { getHeapStatistics } from "node:v8";
import { resourceLimits } from "node:worker_threads";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { JSONRPCErrorResponse, JSONRPCMessage, RequestId } from "../mcp/wire/wire.ts";
import { type JsonSize, measureJson } from "./json-size.ts";
import { noMemoryFor, type TooLarge, tooDeep, tooManyValues, unaskedTooLong } from "./too-large.ts";

/** A shorter text cannot hold more values than it has bytes: some 25 MB of heap, and is not measured. */
export const MEASURED_BYTES = 256 * 1024;
/** The most heap that a key or value takes while it is parsed; measured over all kinds with Node 24: 20 to 95. */
const VALUE_HEAP_BYTES = 100;
/** The rest of the heap is for what is made of the message, and for an error in the estimate. */
const USED_HEAP_SHARE = 0.75;

export type Incoming =
  | { kind: "messages"; messages: JSONRPCMessage[] }
  /** Not JSON, or JSON that is no JSON-RPC message. */
  | { kind: "noise" }
  /** A long answer to nothing that was asked, for example to a request that was cancelled. */
  | { kind: "stray"; id: RequestId }
  /** `id`: of the request that it answers, where that is known. */
  | { kind: "refused"; error: TooLarge; id: RequestId | undefined };

export interface IncomingOptions {
  /** Whether several messages may come as one array (MCP 2025-03-26, basic/transports, over HTTP only). */
  batches: boolean;
  /** Whether a request of that id is open. Absent: not known. */
  isAsked?: (id: RequestId) => boolean;
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
/** Enough for a byte order mark and some white space. */
const START_BYTES = 100;
const CONTAINER = /^\s*([[{]|$)/;

function readId(text: string | undefined): RequestId | undefined {
  if (text === undefined) return undefined;
  try {
    const id: unknown = JSON.parse(text);
    return typeof id === "number" || typeof id === "string" ? id : undefined;
  } catch {
    return undefined;
  }
}

/** Heap for the text as a string, for the strings in it, which are copies, and for everything else. */
function heapBytes(bytes: Buffer, text: string, values: number): number {
  // A character that is not of ASCII may make all of them two bytes wide.
  const width = text.length === bytes.length ? 1 : 2;
  return 2 * width * text.length + values * VALUE_HEAP_BYTES;
}

function fitsHeap(neededBytes: number): boolean {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  // A worker's limit is that of its old space; the heap's also counts the young one, where nothing long is.
  const oldMebibytes = resourceLimits.maxOldGenerationSizeMb ?? 0;
  const limitBytes = oldMebibytes > 0 ? oldMebibytes * 1024 * 1024 : heap_size_limit;
  return used_heap_size + neededBytes <= limitBytes * USED_HEAP_SHARE;
}

/** Why a text of that size is refused before it is decoded. */
function excessOf(bytes: Buffer, { values, depth, hasMethod }: JsonSize): TooLarge | undefined {
  if (hasMethod && bytes.length > LIMITS.unaskedBytes) {
    return unaskedTooLong(bytes.length, LIMITS.unaskedBytes);
  }
  // Answers may nest as they like: all that reads them either does not recurse or survives that it cannot.
  if (hasMethod && depth > LIMITS.unaskedDepth) return tooDeep(depth);
  return values > LIMITS.messageValues ? tooManyValues(values) : undefined;
}

function parse(text: string, { batches }: IncomingOptions): Incoming {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return NOISE;
  }
  const messages = batches && Array.isArray(value) ? value : [value];
  return messages.every(isMessage) ? { kind: "messages", messages } : NOISE;
}

function readLong(bytes: Buffer, options: IncomingOptions): Incoming {
  if (!CONTAINER.test(bytes.toString("latin1", 0, START_BYTES))) return NOISE;
  const size = measureJson(bytes);
  const id = size.hasMethod ? undefined : readId(size.id);
  if (id !== undefined && options.isAsked?.(id) === false) return { kind: "stray", id };
  const excess = excessOf(bytes, size);
  if (excess) return { kind: "refused", error: excess, id };
  const text = bytes.toString("utf8");
  if (!fitsHeap(heapBytes(bytes, text, size.values))) {
    return { kind: "refused", error: noMemoryFor(bytes.length), id };
  }
  return parse(text, options);
}

export function readIncoming(received: Buffer | string, options: IncomingOptions): Incoming {
  if (received.length > MEASURED_BYTES) {
    return readLong(typeof received === "string" ? Buffer.from(received) : received, options);
  }
  return parse(typeof received === "string" ? received : received.toString("utf8"), options);
}

/** JSON-RPC 2.0 leaves the codes from -32000 to -32099 to implementations. */
const REFUSED = -32_000;

/**
 * What the request gets in place of the refused answer. `data` is the error itself, which no server can send:
 * whoever made the request tells the two apart by that.
 */
export const refusalOf = (id: RequestId, error: TooLarge): JSONRPCErrorResponse => ({
  jsonrpc: "2.0",
  id,
  error: { code: REFUSED, message: error.message, data: error },
});
