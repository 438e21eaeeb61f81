/**
 * The bytes of one message that is not complete, in the pieces in which they come. Small pieces are copied together,
 * because a message of 64 MiB that comes byte by byte would otherwise cost some GB of objects. A long message is put together
 * as it comes, so that it can be handed to another thread as it is: copied there at its end, 60 MB would take 80 ms.
 */
import { LONG_BYTES } from "./incoming.ts";

/** A piece of this size or more is kept as it is, in a message that is not long. */
const LARGE_BYTES = 16 * 1024;
const BLOCK_BYTES = 64 * 1024;
/** Most messages come in a few pieces, which are kept as they are, whatever their size. */
const FEW_PIECES = 32;
const NO_BLOCK = Buffer.alloc(0);
/** The room of a long message grows by this. The system gives the memory when the bytes come. */
const GROWN_BYTES = 1024 * 1024;
/** The start of a long message that is looked at before the message is read. */
const HEAD_BYTES = 64 * 1024;

/** A long message: the first `length` bytes of a buffer of its own, which can be handed to another thread. */
export class LongBytes {
  readonly buffer: ArrayBuffer;
  readonly length: number;

  constructor(buffer: ArrayBuffer, length: number) {
    this.buffer = buffer;
    this.length = length;
  }

  /** The first bytes, at most 64 KiB of them. */
  get head(): Buffer {
    return Buffer.from(this.buffer, 0, Math.min(this.length, HEAD_BYTES));
  }
}

/** All bytes of a message. */
export type Received = Buffer | LongBytes;

/** The start of it, for a line in the log. */
export const startOf = (received: Received, bytes: number): string =>
  (received instanceof LongBytes ? received.head : received).toString("utf8", 0, bytes);

export class Pieces {
  bytes = 0;
  readonly #maxBytes: number;
  #parts: Buffer[] = [];
  #block: Buffer<ArrayBuffer> = NO_BLOCK;
  /** Start and end of the bytes in the block that are not in `#parts` yet. */
  #from = 0;
  #filled = 0;
  /** The room of a long message. */
  #long: Uint8Array<ArrayBuffer> | undefined;

  /** `maxBytes`: whoever pushes sees to it that no message has more. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    const before = this.bytes;
    this.bytes += piece.length;
    if (!this.#long && this.bytes > LONG_BYTES) this.#becomeLong();
    if (this.#long) this.#keepLong(this.#long, piece, before);
    else if (piece.length < LARGE_BYTES && this.#parts.length >= FEW_PIECES) this.#copy(piece);
    else {
      this.#flush();
      this.#parts.push(piece);
    }
  }

  /** Returns all bytes and forgets the pieces. */
  take(): Received {
    this.#startBlock(NO_BLOCK);
    const [parts, bytes, long] = [this.#parts, this.bytes, this.#long];
    this.#parts = [];
    this.bytes = 0;
    this.#long = undefined;
    if (long) return new LongBytes(long.buffer, bytes);
    const [only] = parts;
    return parts.length === 1 && only ? only : Buffer.concat(parts, bytes);
  }

  #flush(): void {
    if (this.#filled > this.#from) this.#parts.push(this.#block.subarray(this.#from, this.#filled));
    this.#from = this.#filled;
  }

  #startBlock(block: Buffer<ArrayBuffer>): void {
    this.#flush();
    this.#block = block;
    this.#from = 0;
    this.#filled = 0;
  }

  #copy(piece: Buffer): void {
    if (this.#filled + piece.length > this.#block.length)
      this.#startBlock(Buffer.allocUnsafeSlow(BLOCK_BYTES));
    this.#filled += piece.copy(this.#block, this.#filled);
  }

  #keepLong({ buffer }: Uint8Array<ArrayBuffer>, piece: Buffer, at: number): void {
    const end = at + piece.length;
    if (end > buffer.byteLength)
      buffer.resize(Math.min(Math.max(end, buffer.byteLength + GROWN_BYTES), this.#maxBytes));
    this.#long?.set(piece, at);
  }

  #becomeLong(): void {
    this.#startBlock(NO_BLOCK);
    const before = this.#parts;
    this.#parts = [];
    // What is reserved is no memory yet: the buffer grows in place, without a copy.
    this.#long = new Uint8Array(new ArrayBuffer(0, { maxByteLength: this.#maxBytes }));
    let at = 0;
    for (const part of before) {
      this.#keepLong(this.#long, part, at);
      at += part.length;
    }
  }
}
