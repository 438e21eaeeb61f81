/**
 * Cuts a byte stream into lines. Bytes are copied once, when a line is complete, so the cost of a line
 * is linear in its length however many chunks it comes in.
 */
const NEWLINE = 0x0a;

export interface LineReader {
  push(chunk: Buffer): void;
}

/** `onLine` gets each line without its newline; `onTooLong` is called once, then nothing more is read. */
export function createLineReader(options: {
  maxBytes: number;
  onLine: (line: Buffer) => void;
  onTooLong: () => void;
}): LineReader {
  let parts: Buffer[] = [];
  let pendingBytes = 0;
  let stopped = false;

  const keep = (part: Buffer): void => {
    pendingBytes += part.length;
    if (pendingBytes > options.maxBytes) {
      stopped = true;
      parts = [];
      options.onTooLong();
      return;
    }
    if (part.length > 0) parts.push(part);
  };

  return {
    push(chunk) {
      let start = 0;
      while (!stopped) {
        const end = chunk.indexOf(NEWLINE, start);
        keep(chunk.subarray(start, end === -1 ? undefined : end));
        if (end === -1 || stopped) return;
        const line = parts.length === 1 ? parts[0] : Buffer.concat(parts, pendingBytes);
        parts = [];
        pendingBytes = 0;
        if (line && line.length > 0) options.onLine(line);
        start = end + 1;
      }
    },
  };
}
