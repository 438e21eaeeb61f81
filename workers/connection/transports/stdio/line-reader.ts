/**
 * Cuts a byte stream into lines. Bytes are copied once, when a line is complete, so the cost of a line is linear in its
 * length, whatever the number of chunks.
 */
import { createPieces, type Received } from "../../messages/pieces.ts";

export const NEWLINE = 0x0a;

export interface LineReader {
  /** Bytes held of the line that is not complete. */
  readonly pendingBytes: number;
  /** Each step is one line, with what `onLine` answers. */
  push(chunk: Buffer): Generator<undefined | Promise<unknown>>;
  /** Forgets the line that is not complete and reads nothing more. */
  stop(): void;
}

/**
 * `onLine` gets each line without its newline, `onEmpty` the number of empty lines in a row; `onTooLong` is called once,
 * then nothing more is read.
 */
export function createLineReader(options: {
  maxBytes: number;
  onLine: (line: Received) => undefined | Promise<unknown>;
  onEmpty?: (lines: number) => void;
  onTooLong: () => void;
}): LineReader {
  const pieces = createPieces();
  let stopped = false;

  const stop = (): void => {
    stopped = true;
    pieces.take();
  };
  const keep = (piece: Buffer): void => {
    if (pieces.bytes + piece.length > options.maxBytes) {
      stop();
      options.onTooLong();
      return;
    }
    pieces.push(piece);
  };

  return {
    get pendingBytes() {
      return pieces.bytes;
    },
    *push(chunk) {
      let start = 0;
      while (!stopped) {
        const from = start;
        // A flood of empty lines costs only a look at each byte.
        if (pieces.bytes === 0) while (chunk[start] === NEWLINE) start++;
        if (start > from) options.onEmpty?.(start - from);
        const end = chunk.indexOf(NEWLINE, start);
        keep(chunk.subarray(start, end === -1 ? undefined : end));
        if (end === -1 || stopped) return;
        const line = pieces.take();
        if (line.length > 0) yield options.onLine(line);
        start = end + 1;
      }
    },
    stop,
  };
}
