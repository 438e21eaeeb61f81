/**
 * Server-sent events out of bytes (WHATWG HTML, section 9.2.6). Each byte is looked at once whatever the line
 * ends are, and a line that ends in CR counts at once: the SDK's parser keeps such a CR until more bytes come,
 * so that a server which writes CR only is heard one event late, and searches its lines in quadratic time.
 */
import type { Readable } from "node:stream";
import {
  createPieces,
  type LongMessages,
  longMessages,
  longTurn,
  MEASURED_BYTES,
  TooLarge,
} from "../../messages/messages.ts";

export { TooLarge } from "../../messages/messages.ts";

/** The body of an HTTP answer. */
export interface ServerBody extends Readable {
  /** Told of each piece before it is looked at: who keeps the worker busy is known also when it never returns. */
  onBytes?: ((bytes: number) => void) | undefined;
}

export interface ServerEvent {
  /** `message` where the server names none. */
  type: string;
  data: string;
}

export interface EventHandlers {
  maxBytes: number;
  onEvent: (event: ServerEvent) => void;
  /** The last event's id, to resume with. */
  onId?: (id: string) => void;
  /** Wait before the stream is opened again, in ms. */
  onRetry?: (retryMs: number) => void;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const NOTHING = Buffer.alloc(0);
const LINE_END = Buffer.from("\n");
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const FIELD_BYTES = 1_024;
/** What can go back in a header. */
const USABLE_ID = /^[\x20-\x7e]{1,1024}$/;

export interface EventReader {
  /** Bytes that are held of an event which is not complete. */
  readonly bytes: number;
  /** Throws `TooLarge`; nothing may be pushed then. */
  push(chunk: Buffer): void;
}

export function createEventReader({ maxBytes, onEvent, onId, onRetry }: EventHandlers): EventReader {
  /** Of the line that is not complete. */
  const rest = createPieces();
  /** Of the event that is not complete, as bytes: each of a million lines as a string would cost more than it holds. */
  const data = createPieces();
  let hasData = false;
  let type = "";
  let firstLine = true;
  let afterCr = false;

  const field = (name: string, value: Buffer): void => {
    if (name === "data") {
      if (hasData) data.push(LINE_END);
      data.push(value);
      hasData = true;
      return;
    }
    // The other fields are short, and what is kept of them is not counted.
    const text = value.toString("utf8", 0, FIELD_BYTES + 1);
    if (name === "event") type = text;
    else if (name === "id" && USABLE_ID.test(text)) onId?.(text);
    else if (name === "retry" && /^\d{1,9}$/.test(text)) onRetry?.(Number(text));
  };

  const dispatch = (): void => {
    const name = type || "message";
    type = "";
    if (!hasData) return;
    hasData = false;
    onEvent({ type: name, data: data.take().toString("utf8") });
  };

  const line = (bytes: Buffer): void => {
    let text = bytes;
    if (firstLine && text.subarray(0, 3).equals(BOM)) text = text.subarray(3);
    firstLine = false;
    const colon = text.indexOf(":");
    if (text.length === 0) dispatch();
    else if (colon === -1) field(text.toString("latin1"), NOTHING);
    // A comment begins with the colon.
    else if (colon > 0) {
      const value = text.subarray(text[colon + 1] === SPACE ? colon + 2 : colon + 1);
      field(text.toString("latin1", 0, colon), value);
    }
  };

  const take = (piece: Buffer): void => {
    if (rest.bytes + data.bytes + piece.length > maxBytes) throw new TooLarge(maxBytes);
    rest.push(piece);
  };

  return {
    get bytes() {
      return rest.bytes + data.bytes;
    },
    push(chunk) {
      let start = 0;
      // Each is searched again only when the scan has passed it.
      let lf = chunk.indexOf(LF);
      let cr = chunk.indexOf(CR);
      while (start < chunk.length) {
        if (afterCr && chunk[start] === LF) start++;
        afterCr = false;
        if (lf !== -1 && lf < start) lf = chunk.indexOf(LF, start);
        if (cr !== -1 && cr < start) cr = chunk.indexOf(CR, start);
        const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
        take(chunk.subarray(start, end === -1 ? undefined : end));
        if (end === -1) return;
        afterCr = chunk[end] === CR;
        line(rest.take());
        start = end + 1;
      }
    },
  };
}

/** Reads a stream of events to its end. Rejects where it breaks, and with `TooLarge`; the stream is ended then. */
export async function readEvents(
  body: ServerBody,
  handlers: EventHandlers,
  long: LongMessages = longMessages,
): Promise<void> {
  const reader = createEventReader(handlers);
  const place = long.open((error) => body.destroy(error));
  body.once("close", place.end);
  try {
    for await (const piece of body) {
      const chunk = piece as Buffer;
      body.onBytes?.(chunk.length);
      const isLong = reader.bytes + chunk.length > MEASURED_BYTES;
      if (isLong && (chunk.includes(LF) || chunk.includes(CR))) await longTurn();
      reader.push(chunk);
      const turn = place.hold(reader.bytes);
      if (turn) await turn;
    }
  } finally {
    body.off("close", place.end);
    place.end();
  }
}

/** Reads a whole body. Rejects as `readEvents`. */
export async function readBody(
  body: ServerBody,
  maxBytes: number,
  long: LongMessages = longMessages,
): Promise<Buffer> {
  const pieces = createPieces();
  const place = long.open((error) => body.destroy(error));
  body.once("close", place.end);
  try {
    for await (const chunk of body) {
      const { length } = chunk as Buffer;
      body.onBytes?.(length);
      if (pieces.bytes + length > maxBytes) throw new TooLarge(maxBytes);
      pieces.push(chunk as Buffer);
      const turn = place.hold(pieces.bytes);
      if (turn) await turn;
    }
  } finally {
    body.off("close", place.end);
    place.end();
  }
  if (pieces.bytes > MEASURED_BYTES) await longTurn();
  return pieces.take();
}
