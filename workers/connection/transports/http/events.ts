/**
 * Reads server-sent events from bytes (WHATWG HTML, section 9.2.6). The reader looks at each byte once, whatever the
 * line ends are, and a line that ends in CR is complete at once. The SDK's parser keeps such a CR until more bytes
 * come, so that it reports the events of a server that writes only CR one event late, and takes quadratic time for
 * its lines.
 */

import type { LongReader } from "../../../shared/pace/long-messages.ts";
import { createReader, inTurn, type Reader, readInTurn } from "../../../shared/pace/turns.ts";
import { Pieces, type Received, startOf } from "../../messages/pieces.ts";
import { type MessageStream, openLong, receive } from "../../messages/receive.ts";
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
  /**
   * Gets the id behind which the stream can be resumed, before the event itself: that of a complete event, with or without
   * data, or of one that is refused for its size. An event that breaks off must come again, so its id does not count.
   */
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

export class EventReader {
  readonly #to: EventHandlers;
  /** Data of the event that is not complete, as bytes: a million short lines would cost more memory as strings. */
  readonly #data: Pieces;
  #hasData = false;
  #type = "";
  /** The id of the event that is not complete. */
  #id: string | undefined;
  #isFirst = true;
  /** Lines since the last event that are none of its data, and their bytes. */
  #idleLines = 0;
  #idleBytes = 0;
  /** Bytes of the line that is not complete. */
  readonly #rest = new Pieces(LINE_BYTES);
  #afterCr = false;
  /** The line that is not complete is a long one of data, whose start is in `#data`. */
  #isInData = false;
  /** Bytes of a long line of another field beyond those in `#rest`. */
  #dropped = 0;

  constructor(to: EventHandlers) {
    this.#to = to;
    this.#data = new Pieces(to.maxBytes);
  }

  /** Bytes held of the event that is not complete. */
  get bytes(): number {
    return this.#rest.bytes + this.#dropped + this.#data.bytes;
  }

  /** The event is complete, or nobody wants it: the stream is resumed behind it. */
  commitId(): void {
    if (this.#id !== undefined) this.#to.onId?.(this.#id);
    this.#id = undefined;
  }

  /** Each step is one line; that of an event's last line is what `onEvent` answers. Throws `TooLarge`, then it has ended. */
  *push(chunk: Buffer): Generator<undefined | Promise<unknown>> {
    let start = 0;
    // LF and CR are each searched again only after the scan has passed them.
    let lf = chunk.indexOf(LF);
    let cr = chunk.indexOf(CR);
    while (start < chunk.length) {
      if (this.#afterCr && chunk[start] === LF) start++;
      this.#afterCr = false;
      if (lf !== -1 && lf < start) lf = chunk.indexOf(LF, start);
      if (cr !== -1 && cr < start) cr = chunk.indexOf(CR, start);
      const end = lf === -1 || (cr !== -1 && cr < lf) ? cr : lf;
      this.#take(chunk.subarray(start, end === -1 ? undefined : end));
      if (end === -1) return;
      this.#afterCr = chunk[end] === CR;
      yield this.#endLine();
      start = end + 1;
    }
  }

  /** Keeps a part of a line. Of a long line of any field but data the first bytes are enough. */
  #take(piece: Buffer): void {
    const rest = this.#rest;
    if (this.bytes + piece.length > this.#to.maxBytes) throw new TooLarge(this.#to.maxBytes);
    if (this.#isInData) this.#data.push(piece);
    else if (this.#dropped > 0) this.#dropped += piece.length;
    else if (rest.bytes + piece.length <= LINE_BYTES) rest.push(piece);
    else {
      const start = Buffer.concat([rest.take() as Buffer, piece]);
      const { name, value } = this.#split(start);
      this.#isInData = name === "data";
      if (this.#isInData) {
        this.#set("data", value);
        return;
      }
      rest.push(start.subarray(0, LINE_BYTES));
      this.#dropped = start.length - LINE_BYTES;
    }
  }

  #endLine(): undefined | Promise<unknown> {
    const bytes = this.#rest.bytes + this.#dropped + 1;
    this.#dropped = 0;
    if (this.#isInData) {
      this.#isInData = false;
      return undefined;
    }
    // A line that was gathered is short, so it is one buffer.
    const { name, value } = this.#split(this.#rest.take() as Buffer);
    if (name !== "data") {
      this.#idleBytes += bytes;
      if (++this.#idleLines > EVENT_LINES) this.#countIdle();
    }
    if (name === undefined) return this.#dispatch();
    this.#set(name, value);
    return undefined;
  }

  /** The parts of a line. The name is empty for a comment, and undefined for an empty line. */
  #split(bytes: Buffer): { name: string | undefined; value: Buffer } {
    const text = this.#isFirst && bytes.subarray(0, 3).equals(BOM) ? bytes.subarray(3) : bytes;
    this.#isFirst = false;
    if (text.length === 0) return { name: undefined, value: NOTHING };
    const colon = text.indexOf(":");
    if (colon === -1) return { name: text.toString("latin1", 0, FIELD_BYTES), value: NOTHING };
    const value = text.subarray(text[colon + 1] === SPACE ? colon + 2 : colon + 1);
    return { name: text.toString("latin1", 0, colon), value };
  }

  #set(name: string, value: Buffer): void {
    if (name === "data") {
      if (this.#hasData) this.#data.push(LINE_END);
      this.#data.push(value);
      this.#hasData = true;
      return;
    }
    // The other fields are short, so their bytes are not counted.
    const text = value.toString("utf8", 0, FIELD_BYTES + 1);
    if (name === "event") this.#type = text;
    else if (name === "id" && USABLE_ID.test(text)) this.#id = text;
    else if (name === "retry" && /^\d{1,9}$/.test(text)) this.#to.onRetry?.(Number(text));
  }

  #countIdle(): void {
    const [lines, bytes] = [this.#idleLines, this.#idleBytes];
    this.#idleLines = 0;
    this.#idleBytes = 0;
    this.#to.noise.add(lines, bytes);
  }

  #dispatch(): undefined | Promise<unknown> {
    this.commitId();
    const type = this.#type || "message";
    this.#type = "";
    if (this.#data.bytes === 0) this.#countIdle();
    this.#idleLines = 0;
    this.#idleBytes = 0;
    if (!this.#hasData) return undefined;
    this.#hasData = false;
    return this.#to.onEvent({ type, data: this.#data.take() });
  }
}

/** Reads a stream of events to its end. Rejects if the stream breaks, and with `TooLarge`, which ends the stream. */
export async function readEvents(body: ServerBody, handlers: EventHandlers): Promise<void> {
  const events = new EventReader(handlers);
  try {
    await held(body, (slot, reader) =>
      readInTurn(body, reader, function* (piece) {
        yield* events.push(piece);
        yield slot.hold(events.bytes);
      }),
    );
  } catch (error) {
    if (error instanceof TooLarge) events.commitId();
    throw error;
  }
}

/**
 * Reads a whole body and does something with it, which counts as a part of reading. Rejects as `readEvents` does, and with
 * what `use` throws.
 */
export async function readBody(
  body: ServerBody,
  maxBytes: number,
  use: (received: Received) => undefined | Promise<unknown> = () => undefined,
): Promise<void> {
  const pieces = new Pieces(maxBytes);
  await held(body, async (slot, reader) => {
    await readInTurn(body, reader, (piece) => {
      if (pieces.bytes + piece.length > maxBytes) throw new TooLarge(maxBytes);
      pieces.push(piece);
      return [slot.hold(pieces.bytes)];
    });
    await inTurn(reader);
    await use(pieces.take());
  });
}

/** Reads with a slot for long messages, if it needs one. */
async function held(
  body: ServerBody,
  read: (slot: LongReader, reader: Reader) => Promise<void>,
): Promise<void> {
  const slot = openLong((error) => body.destroy(error));
  body.once("close", slot.closed);
  try {
    await read(slot, body.reader ?? createReader());
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
