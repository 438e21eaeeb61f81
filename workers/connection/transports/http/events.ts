/**
 * Reads server-sent events from bytes (WHATWG HTML, section 9.2.6). The reader looks at each byte once, whatever the
 * line ends are, and a line that ends in CR is complete at once. The SDK's parser keeps such a CR until more bytes
 * come, so that it reports the events of a server that writes only CR one event late, and takes quadratic time for
 * its lines.
 */

import { createReader, inTurn, readInTurn } from "../../../shared/pace/turns.ts";
import { createPieces, type Received, startOf } from "../../messages/pieces.ts";
import { type LongMessages, longMessages, type MessageStream, receive } from "../../messages/receive.ts";
import { type Noise, TooLarge } from "../../messages/too-large.ts";
import type { ServerBody } from "../../web/client.ts";

export interface ServerEvent {
  /** `message` if the server names no type. */
  type: string;
  /** UTF-8. */
  data: Received;
}

interface EventHandlers {
  maxBytes: number;
  /** Counts lines that belong to no event, and events without data. */
  noise: Noise;
  /** While a promise that this answers has not settled, nothing more is read. */
  onEvent: (event: ServerEvent) => undefined | Promise<unknown>;
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
/** A longer line is not gathered first: if it is data, each part is copied once, to where the data is. */
const LINE_BYTES = 64 * 1024;
/** Lines of one event besides its data. Real events have three. */
const EVENT_LINES = 100;
/** An id that can be sent back in a header. */
const USABLE_ID = /^[\x20-\x7e]{1,1024}$/;

interface EventReader {
  /** Bytes held of the event that is not complete. */
  readonly bytes: number;
  /** Each step is one line; that of an event's last line is what `onEvent` answers. Throws `TooLarge`, then it has ended. */
  push(chunk: Buffer): Generator<undefined | Promise<unknown>>;
}

/** The fields of the event that is not complete. */
function createFields({ noise, onEvent, onId, onRetry }: EventHandlers) {
  /** Data as bytes: a million short lines would cost more memory as strings. */
  const data = createPieces();
  let hasData = false;
  let type = "";
  let isFirst = true;
  /** Lines since the last event that are none of its data, and their bytes. */
  let idleLines = 0;
  let idleBytes = 0;

  const countIdle = (): void => {
    noise.add(idleLines, idleBytes);
    idleLines = 0;
    idleBytes = 0;
  };

  const dispatch = (): undefined | Promise<unknown> => {
    const name = type || "message";
    type = "";
    if (data.bytes === 0) countIdle();
    idleLines = 0;
    idleBytes = 0;
    if (!hasData) return undefined;
    hasData = false;
    return onEvent({ type: name, data: data.take() });
  };

  return {
    data,
    /** The parts of a line. The name is empty for a comment, and undefined for an empty line. */
    split: (bytes: Buffer): { name: string | undefined; value: Buffer } => {
      const text = isFirst && bytes.subarray(0, 3).equals(BOM) ? bytes.subarray(3) : bytes;
      isFirst = false;
      if (text.length === 0) return { name: undefined, value: NOTHING };
      const colon = text.indexOf(":");
      if (colon === -1) return { name: text.toString("latin1", 0, FIELD_BYTES), value: NOTHING };
      const value = text.subarray(text[colon + 1] === SPACE ? colon + 2 : colon + 1);
      return { name: text.toString("latin1", 0, colon), value };
    },
    set: (name: string, value: Buffer): void => {
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
    },
    /** A line without data has come. */
    idle: (bytes: number): void => {
      idleLines++;
      idleBytes += bytes;
      if (idleLines > EVENT_LINES) countIdle();
    },
    dispatch,
  };
}

export function createEventReader(handlers: EventHandlers): EventReader {
  const { maxBytes } = handlers;
  const fields = createFields(handlers);
  const { data } = fields;
  /** Bytes of the line that is not complete. */
  const rest = createPieces();
  let afterCr = false;
  /** The line that is not complete is a long one of data, whose start is in `data`. */
  let isInData = false;
  /** Bytes of a long line of another field beyond those in `rest`. */
  let dropped = 0;

  /** `start`: of a long line. Of any field but data the first bytes are enough. */
  const takeLong = (start: Buffer): void => {
    const { name, value } = fields.split(start);
    isInData = name === "data";
    if (isInData) {
      fields.set("data", value);
      return;
    }
    rest.push(start.subarray(0, LINE_BYTES));
    dropped = start.length - LINE_BYTES;
  };

  /** Keeps a part of a line. */
  const take = (piece: Buffer): void => {
    if (rest.bytes + dropped + data.bytes + piece.length > maxBytes) throw new TooLarge(maxBytes);
    if (isInData) data.push(piece);
    else if (dropped > 0) dropped += piece.length;
    else if (rest.bytes + piece.length <= LINE_BYTES) rest.push(piece);
    else takeLong(Buffer.concat([rest.take() as Buffer, piece]));
  };

  const endLine = (): undefined | Promise<unknown> => {
    const bytes = rest.bytes + dropped + 1;
    dropped = 0;
    if (isInData) {
      isInData = false;
      return undefined;
    }
    // A line that was gathered is short, so it is one buffer.
    const { name, value } = fields.split(rest.take() as Buffer);
    if (name !== "data") fields.idle(bytes);
    if (name === undefined) return fields.dispatch();
    fields.set(name, value);
    return undefined;
  };

  return {
    get bytes() {
      return rest.bytes + dropped + data.bytes;
    },
    *push(chunk) {
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
        yield endLine();
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
  const reader = createEventReader(handlers);
  await held(body, long, (hold) =>
    readInTurn(body, body.reader ?? createReader(), function* (piece) {
      yield* reader.push(piece);
      yield hold(reader.bytes);
    }),
  );
}

/**
 * Reads a whole body and does something with it, which counts as a part of reading. Rejects as `readEvents` does, and with
 * what `use` throws.
 */
export async function readBody(
  body: ServerBody,
  maxBytes: number,
  use: (received: Received) => undefined | Promise<unknown> = () => undefined,
  long: LongMessages = longMessages,
): Promise<void> {
  const pieces = createPieces();
  const reader = body.reader ?? createReader();
  await held(body, long, async (hold) => {
    await readInTurn(body, reader, (piece) => {
      if (pieces.bytes + piece.length > maxBytes) throw new TooLarge(maxBytes);
      pieces.push(piece);
      return [hold(pieces.bytes)];
    });
    await inTurn(reader);
    await use(pieces.take());
  });
}

/** Reads with a slot for long messages, if it needs one. */
async function held(
  body: ServerBody,
  long: LongMessages,
  read: (hold: (bytes: number) => Promise<void> | undefined) => Promise<void>,
): Promise<void> {
  const slot = long.open((error) => body.destroy(error));
  body.once("close", slot.closed);
  try {
    await read(slot.hold);
  } finally {
    body.off("close", slot.closed);
    slot.end();
  }
}

/** The log cuts a note, after it has taken secrets out. */
const NOTED_BYTES = 16_384;

/** Anything else in the event is noted. Answers and throws what `receive` does. */
export function handEvent({ type, data }: ServerEvent, to: MessageStream): undefined | Promise<unknown> {
  if (type !== "message" || data.length === 0) return undefined;
  return receive(data, {
    ...to,
    onNoise: () => to.onNote(`sent an event that is not a JSON-RPC message: ${startOf(data, NOTED_BYTES)}`),
  });
}
