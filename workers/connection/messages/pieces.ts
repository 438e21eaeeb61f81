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

export interface Pieces {
  readonly bytes: number;
  push(piece: Buffer): void;
  /** Returns all bytes and forgets the pieces. */
  take(): Received;
}

export function createPieces(): Pieces {
  let parts: Buffer[] = [];
  let bytes = 0;
  let block: Buffer<ArrayBuffer> = NO_BLOCK;
  /** Start and end of the bytes in the block that are not in `parts` yet. */
  let from = 0;
  let filled = 0;
  let isLong = false;

  const flush = (): void => {
    if (filled > from) parts.push(block.subarray(from, filled));
    from = filled;
  };
  const copy = (piece: Buffer): void => {
    if (filled + piece.length > block.length) {
      flush();
      block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      from = 0;
      filled = 0;
    }
    filled += piece.copy(block, filled);
  };
  /** Whoever reads a stream gets each piece for itself, so no other code looks at the memory that the piece fills. */
  const hasOwnMemory = ({ length, buffer }: Buffer): boolean =>
    length >= OWN_BYTES && length === buffer.byteLength && buffer instanceof ArrayBuffer;
  const startBlock = (): void => {
    flush();
    block = NO_BLOCK;
    from = 0;
    filled = 0;
  };
  const keepLong = (piece: Buffer): void => {
    if (hasOwnMemory(piece)) {
      startBlock();
      parts.push(piece);
      return;
    }
    for (let at = 0; at < piece.length; ) {
      if (filled === block.length) {
        startBlock();
        block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      }
      const copied = piece.copy(block, filled, at);
      filled += copied;
      at += copied;
    }
  };
  const becomeLong = (): void => {
    startBlock();
    const before = parts;
    parts = [];
    isLong = true;
    for (const part of before) keepLong(part);
  };
  const forget = (): void => {
    parts = [];
    bytes = 0;
    block = NO_BLOCK;
    from = 0;
    filled = 0;
    isLong = false;
  };

  return {
    get bytes() {
      return bytes;
    },
    push: (piece) => {
      if (piece.length === 0) return;
      bytes += piece.length;
      if (!isLong && bytes > LONG_BYTES) becomeLong();
      if (isLong) {
        keepLong(piece);
      } else if (piece.length < LARGE_BYTES && parts.length >= FEW_PIECES) {
        copy(piece);
      } else {
        flush();
        parts.push(piece);
      }
    },
    take: () => {
      flush();
      const [only] = parts;
      // Every part of a long message is the start of a block of its own.
      const all = (): Received =>
        isLong ? new Blocks(parts as Buffer<ArrayBuffer>[], bytes) : Buffer.concat(parts, bytes);
      const whole = parts.length === 1 && only && !isLong ? only : all();
      forget();
      return whole;
    },
  };
}
