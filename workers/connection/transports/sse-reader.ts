/**
 * Server-sent events out of bytes (WHATWG HTML, section 9.2.6). Each byte is looked at once whatever the line
 * ends are, and a line that ends in CR counts at once: the SDK's parser keeps such a CR until more bytes come,
 * so that a server which writes CR only is heard one event late, and searches its lines in quadratic time.
 */
import type { Readable } from "node:stream";

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

/** An event or an answer is longer than allowed. */
export class TooLarge extends Error {
  readonly limitBytes: number;

  constructor(limitBytes: number) {
    super(`a message of more than ${limitBytes} bytes`);
    this.name = "TooLarge";
    this.limitBytes = limitBytes;
  }
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const NOTHING = Buffer.alloc(0);
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);
/** What can go back in a header. */
const USABLE_ID = /^[\x20-\x7e]{1,1024}$/;

export interface EventReader {
  /** Throws `TooLarge`; nothing may be pushed then. */
  push(chunk: Buffer): void;
}

export function createEventReader({ maxBytes, onEvent, onId, onRetry }: EventHandlers): EventReader {
  /** Pieces of the line that is not complete. */
  let pieces: Buffer[] = [];
  let pieceBytes = 0;
  let data: string[] = [];
  let dataBytes = 0;
  let type = "";
  let firstLine = true;
  let afterCr = false;

  const field = (name: string, value: Buffer): void => {
    if (name === "data") {
      data.push(value.toString("utf8"));
      dataBytes += value.length + 1;
    } else if (name === "event") type = value.toString("utf8");
    else if (name === "id") {
      const id = value.toString("utf8");
      if (USABLE_ID.test(id)) onId?.(id);
    } else if (name === "retry") {
      const text = value.toString("latin1");
      if (/^\d{1,9}$/.test(text)) onRetry?.(Number(text));
    }
  };

  const dispatch = (): void => {
    if (data.length > 0) onEvent({ type: type || "message", data: data.join("\n") });
    data = [];
    dataBytes = 0;
    type = "";
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
    pieceBytes += piece.length;
    if (pieceBytes + dataBytes > maxBytes) throw new TooLarge(maxBytes);
    if (piece.length > 0) pieces.push(piece);
  };

  return {
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
        const [only] = pieces;
        const whole = pieces.length === 1 && only ? only : Buffer.concat(pieces, pieceBytes);
        pieces = [];
        pieceBytes = 0;
        line(whole);
        start = end + 1;
      }
    },
  };
}

/** Reads a stream of events to its end. Rejects where it breaks, and with `TooLarge`; the stream is ended then. */
export async function readEvents(body: Readable, handlers: EventHandlers): Promise<void> {
  const reader = createEventReader(handlers);
  for await (const chunk of body) reader.push(chunk as Buffer);
}

/** Reads a whole body. Rejects as `readEvents`. */
export async function readBody(body: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length;
    if (bytes > maxBytes) throw new TooLarge(maxBytes);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks, bytes);
}
