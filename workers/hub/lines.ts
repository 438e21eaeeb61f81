/** Cuts the bytes of a server or a session into messages, one a line, and reads the envelope of each while it comes. */
import { EnvelopeReader, wordOf } from "./envelope.ts";
import type { Line } from "./routes.ts";

const NEWLINE = 0x0a;
const [OPENS_OBJECT, SPACE] = [0x7b, 0x20];
/** More than this at a stretch would hold others up. */
const STEP_BYTES = 64 * 1024;
/** Smaller pieces of a message are copied together: each piece costs an object. */
const SMALL_BYTES = 4 * 1024;
const FEW_PIECES = 32;

/**
 * Whether the line may hold a message, by the rule of a server of one session (connection/messages/incoming.ts): a log line may
 * be JSON and have an `id`. Anything else is noise, which the sessions tell in their own logs.
 */
export const mayBeMessage = ({ pieces, envelope }: Line): boolean => {
  const [first] = pieces;
  let at = 0;
  while (first && at < first.length && (first[at] ?? 0) <= SPACE) at++;
  const hasName = envelope.id !== undefined || envelope.method !== undefined;
  return first?.[at] === OPENS_OBJECT && hasName && wordOf(envelope.jsonrpc) === "2.0";
};

export class Lines {
  #pieces: Buffer[] = [];
  #small: Buffer[] = [];
  #smallBytes = 0;
  #bytes = 0;
  #reader = new EnvelopeReader();

  /** Bytes of the message that is not complete. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** Each step is a message, or undefined after a part of one. */
  *push(chunk: Buffer): Generator<Line | undefined> {
    for (let start = 0; start < chunk.length; ) {
      const end = chunk.indexOf(NEWLINE, start);
      const piece = chunk.subarray(start, end === -1 ? chunk.length : end);
      for (let at = 0; at < piece.length; at += STEP_BYTES) {
        const part = piece.subarray(at, at + STEP_BYTES);
        this.#reader.push(part);
        if (piece.length > STEP_BYTES) yield undefined;
      }
      this.#keep(piece);
      if (end === -1) return;
      start = end + 1;
      if (this.#bytes > 0) yield this.#take();
    }
  }

  #keep(piece: Buffer): void {
    this.#bytes += piece.length;
    if (piece.length < SMALL_BYTES && this.#pieces.length >= FEW_PIECES) {
      this.#small.push(piece);
      this.#smallBytes += piece.length;
      if (this.#smallBytes >= SMALL_BYTES) this.#flush();
      return;
    }
    this.#flush();
    if (piece.length > 0) this.#pieces.push(piece);
  }

  #flush(): void {
    if (this.#small.length > 0) this.#pieces.push(Buffer.concat(this.#small));
    this.#small = [];
    this.#smallBytes = 0;
  }

  #take(): Line {
    this.#flush();
    const line = { pieces: this.#pieces, bytes: this.#bytes, envelope: this.#reader.envelope };
    this.#pieces = [];
    this.#bytes = 0;
    this.#reader = new EnvelopeReader();
    return line;
  }
}
