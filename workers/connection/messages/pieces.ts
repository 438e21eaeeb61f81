/**
 * The bytes of one message that is not complete, in the pieces in which they come. Small pieces are copied together,
 * because a message of 64 MiB that comes byte by byte would otherwise cost some GB of objects.
 */

/** A piece of this size or more is kept as it is. */
const LARGE_BYTES = 16 * 1024;
const BLOCK_BYTES = 64 * 1024;
/** Most messages come in a few pieces, which are kept as they are, whatever their size. */
const FEW_PIECES = 32;
const NO_BLOCK = Buffer.alloc(0);

export interface Pieces {
  readonly bytes: number;
  push(piece: Buffer): void;
  /** Returns all bytes in one buffer and forgets the pieces. */
  take(): Buffer;
}

export function createPieces(): Pieces {
  let parts: Buffer[] = [];
  let bytes = 0;
  let block = NO_BLOCK;
  /** Start and end of the bytes in the block that are not in `parts` yet. */
  let from = 0;
  let filled = 0;

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

  return {
    get bytes() {
      return bytes;
    },
    push: (piece) => {
      if (piece.length === 0) return;
      bytes += piece.length;
      if (piece.length < LARGE_BYTES && parts.length >= FEW_PIECES) {
        copy(piece);
        return;
      }
      flush();
      parts.push(piece);
    },
    take: () => {
      flush();
      const [only] = parts;
      const whole = parts.length === 1 && only ? only : Buffer.concat(parts, bytes);
      parts = [];
      bytes = 0;
      block = NO_BLOCK;
      from = 0;
      filled = 0;
      return whole;
    },
  };
}
