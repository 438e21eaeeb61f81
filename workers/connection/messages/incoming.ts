/**
 * Turns text of a server into JSON-RPC messages. This is the only place that parses such text. A long text is measured
 * first, and refused if it would cost more than the limits or than the memory that is left: `JSON.parse` is native and
 * cannot be stopped, and a heap that becomes full in it ends the whole of Pi.
 */
import { getHeapStatistics } from "node:v8";
import { resourceLimits } from "node:worker_threads";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { JSONRPCErrorResponse, JSONRPCMessage, RequestId } from "../mcp/wire/wire.ts";
import { type JsonSize, measureJson } from "./json-size.ts";
import { noMemoryFor, type TooLarge, tooDeep, tooManyValues, unaskedTooLong } from "./too-large.ts";

/** A shorter text is not measured: it cannot hold more values than bytes, which is some 25 MB of heap. */
export const MEASURED_BYTES = 256 * 1024;
/** Heap that a key or value takes at most while it is parsed. Measured with Node 24 over all kinds: 20 to 95. */
const VALUE_HEAP_BYTES = 100;
/** The rest of the heap is for the results made from the message, and for an error in the estimate. */
const USED_HEAP_SHARE = 0.75;

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
  /** Whether a request with this id is open. Absent: not known. */
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

/** Heap for the text as a string, for the strings in it, which are copies, and for all values. */
function heapBytes(bytes: Buffer, text: string, values: number): number {
  // One character beyond Latin-1 may make all characters two bytes wide.
  const width = text.length === bytes.length ? 1 : 2;
  return 2 * width * text.length + values * VALUE_HEAP_BYTES;
}

function fitsHeap(neededBytes: number): boolean {
  const { heap_size_limit, used_heap_size } = getHeapStatistics();
  // A worker's limit is that of its old space. The heap's limit includes the young space, which holds nothing long.
  const oldMebibytes = resourceLimits.maxOldGenerationSizeMb ?? 0;
  const limitBytes = oldMebibytes > 0 ? oldMebibytes * 1024 * 1024 : heap_size_limit;
  return used_heap_size + neededBytes <= limitBytes * USED_HEAP_SHARE;
}

/** Why a text of this size is refused before it is decoded; undefined if it is not. */
function excessOf(bytes: Buffer, { values, depth, hasMethod }: JsonSize): TooLarge | undefined {
  if (hasMethod && bytes.length > LIMITS.unaskedBytes) {
    return unaskedTooLong(bytes.length, LIMITS.unaskedBytes);
  }
  // Answers may nest to any depth: every reader of them either does not recurse or survives a full stack.
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

let readSoFar = 0;

/** Length of all messages that this thread has read so far. */
export const bytesRead = (): number => readSoFar;

export function readIncoming(received: Buffer | string, options: IncomingOptions): Incoming {
  readSoFar += received.length;
  if (received.length > MEASURED_BYTES) {
    return readLong(typeof received === "string" ? Buffer.from(received) : received, options);
  }
  return parse(typeof received === "string" ? received : received.toString("utf8"), options);
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
