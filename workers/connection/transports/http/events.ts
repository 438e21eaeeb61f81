/**
 * Reads server-sent events from bytes (WHATWG HTML, section 9.2.6). The reader looks at each byte once, whatever the
 * line ends are, and a line that ends in CR is complete at once. The SDK's parser keeps such a CR until more bytes
 * come, so that it reports the events of a server that writes only CR one event late, and takes quadratic time for
 * its lines.
 */

import { equalPause } from "../../../shared/pace/equal-pause.ts";
import {
  createPieces,
  type LongMessages,
  longMessages,
  longTurn,
  MEASURED_BYTES,
  TooLarge,
} from "../../messages/messages.ts";
import type { ServerBody } from "../../web/web.ts";

export { TooLarge } from "../../messages/messages.ts";

export interface ServerEvent {
  /** `message` if the server names no type. */
  type: string;
  data: string;
}

export interface EventHandlers {
  maxBytes: number;
  onEvent: (event: ServerEvent) => void;
  /** Gets the last event's id, with which the stream can be resumed. */
  onId?: (id: string) => void;
  /** Gets the wait in ms before the stream is to be opened again. */
  onRetry?: (retryMs: number) => void;
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const NOTHING = Buffer.alloc(0);
const LINE_END = Buffer.from("\n");
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
const FIELD_BYTES = 1_024;
/** More events in one piece of a stream than a server that answers calls sends. */
const EVENTS_AT_A_TIME = 20;
/** An id that can be sent back in a header. */
const USABLE_ID = /^[\x20-\x7e]{1,1024}$/;

export interface EventReader {
  /** Bytes held of the event that is not complete. */
  readonly bytes: number;
  /** Throws `TooLarge`. After that nothing may be pushed. */
  push(chunk: Buffer): void;
}

export function createEventReader({ maxBytes, onEvent, onId, onRetry }: EventHandlers): EventReader {
  /** Bytes of the line that is not complete. */
  const rest = createPieces();
  /** Data of the event that is not complete, as bytes: a million short lines would cost more memory as strings. */
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
    // The other fields are short, so their bytes are not counted.
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
    // A line that begins with a colon is a comment.
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
      // LF and CR are each searched again only after the scan has passed them.
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

/** Reads a stream of events to its end. Rejects if the stream breaks, and with `TooLarge`, which ends the stream. */
export async function readEvents(
  body: ServerBody,
  handlers: EventHandlers,
  long: LongMessages = longMessages,
): Promise<void> {
  let events = 0;
  const onEvent = (event: ServerEvent): void => {
    events++;
    handlers.onEvent(event);
  };
  const reader = createEventReader({ ...handlers, onEvent });
  const slot = long.open((error) => body.destroy(error));
  body.once("close", slot.end);
  try {
    for await (const piece of body) {
      const chunk = piece as Buffer;
      body.onBytes?.(chunk.length);
      const isLong = reader.bytes + chunk.length > MEASURED_BYTES;
      if (isLong && (chunk.includes(LF) || chunk.includes(CR))) await longTurn();
      const [before, startedAt] = [events, performance.now()];
      reader.push(chunk);
      if (events - before > EVENTS_AT_A_TIME) await equalPause(startedAt);
      const turn = slot.hold(reader.bytes);
      if (turn) await turn;
    }
  } finally {
    body.off("close", slot.end);
    slot.end();
  }
}

/** Reads a whole body. Rejects as `readEvents` does. */
export async function readBody(
  body: ServerBody,
  maxBytes: number,
  long: LongMessages = longMessages,
): Promise<Buffer> {
  const pieces = createPieces();
  const slot = long.open((error) => body.destroy(error));
  body.once("close", slot.end);
  try {
    for await (const chunk of body) {
      const { length } = chunk as Buffer;
      body.onBytes?.(length);
      if (pieces.bytes + length > maxBytes) throw new TooLarge(maxBytes);
      pieces.push(chunk as Buffer);
      const turn = slot.hold(pieces.bytes);
      if (turn) await turn;
    }
  } finally {
    body.off("close", slot.end);
    slot.end();
  }
  if (pieces.bytes > MEASURED_BYTES) await longTurn();
  return pieces.take();
}
