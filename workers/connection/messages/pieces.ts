/**
 * The bytes of one message that is not complete, in the pieces in which they come. Small pieces are copied together,
 * because a message of 64 MiB that comes byte by byte would otherwise cost some GB of objects. A long message is kept
 * in blocks that can be handed to another thread, which puts them together.
 */
import { LONG_BYTES } from "./incoming.ts";

/** A piece of this size or more is kept as it is, in a message that is not long. */
const LARGE_BYTES = 16 * 1024;
const BLOCK_BYTES = 64 * 1024;
/** A piece of a long message with memory of its own is handed over with that memory. Smaller ones are copied together. */
const OWN_BYTES = 32 * 1024;
/** Most messages come in a few pieces, which are kept as they are, whatever their size. */
const FEW_PIECES = 32;
const NO_BLOCK = Buffer.alloc(0);

/** The bytes of a long message. Each block has memory of its own, so that it can be handed to another thread. */
export class Blocks {
  readonly blocks: readonly Buffer<ArrayBuffer>[];
  readonly length: number;

  constructor(blocks: readonly Buffer<ArrayBuffer>[], length: number) {
    this.blocks = blocks;
    this.length = length;
  }

  /** The first bytes, at most 64 KiB of them. */
  get head(): Buffer {
    return this.blocks[0] ?? NO_BLOCK;
  }
}

/** All bytes of a message: a long one in blocks. */
export type Received = Buffer | Blocks;

/** The start of it, for a line in the log. */
export const startOf = (received: Received, bytes: number): string =>
  (received instanceof Blocks ? received.head : received).toString("utf8", 0, bytes);

export class Pieces {
  bytes = 0;
  #parts: Buffer[] = [];
  #block: Buffer<ArrayBuffer> = NO_BLOCK;
  /** Start and end of the bytes in the block that are not in `#parts` yet. */
  #from = 0;
  #filled = 0;
  #isLong = false;

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.bytes += piece.length;
    if (!this.#isLong && this.bytes > LONG_BYTES) this.#becomeLong();
    if (this.#isLong) this.#keepLong(piece);
    else if (piece.length < LARGE_BYTES && this.#parts.length >= FEW_PIECES) this.#copy(piece);
    else {
      this.#flush();
      this.#parts.push(piece);
    }
  }

  /** Returns all bytes and forgets the pieces. */
  take(): Received {
    this.#startBlock(NO_BLOCK);
    const [parts, bytes, isLong] = [this.#parts, this.bytes, this.#isLong];
    this.#parts = [];
    this.bytes = 0;
    this.#isLong = false;
    // Every part of a long message is the start of a block of its own.
    if (isLong) return new Blocks(parts as Buffer<ArrayBuffer>[], bytes);
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

  #keepLong(piece: Buffer): void {
    const { length, buffer } = piece;
    // Whoever reads a stream gets each piece for itself, so no other code looks at the memory that the piece fills.
    if (length >= OWN_BYTES && length === buffer.byteLength && buffer instanceof ArrayBuffer) {
      this.#startBlock(NO_BLOCK);
      this.#parts.push(piece);
      return;
    }
    for (let at = 0; at < length; ) {
      if (this.#filled === this.#block.length) this.#startBlock(Buffer.allocUnsafeSlow(BLOCK_BYTES));
      const copied = piece.copy(this.#block, this.#filled, at);
      this.#filled += copied;
      at += copied;
    }
  }

  #becomeLong(): void {
    this.#startBlock(NO_BLOCK);
    const before = this.#parts;
    this.#parts = [];
    this.#isLong = true;
    for (const part of before) this.#keepLong(part);
  }
}
