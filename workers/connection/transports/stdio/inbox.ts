/**
 * Turns the stdout of a server into messages: one message a line, each parsed within the limits. Bytes are copied once, when
 * a line is complete, so the cost of a line is linear in its length, whatever the number of chunks. Knows which of our
 * requests are open, so that a refused answer fails only its own request, and a long answer to no open request is not even
 * parsed.
 */
import type { JSONRPCMessage } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isRequest } from "../../messages/incoming.ts";
import { Pieces, type Received, startOf } from "../../messages/pieces.ts";
import { openLong, type Receiver, receive } from "../../messages/receive.ts";
import { Noise, TooLarge } from "../../messages/too-large.ts";

const NEWLINE = 0x0a;
/** The log cuts a note, after it has taken secrets out. */
const NOTED_BYTES = 16 * 1024;

interface LineOptions {
  maxBytes: number;
  onLine: (line: Received) => undefined | Promise<unknown>;
  onEmpty?: (lines: number) => void;
  onTooLong: () => void;
}

/**
 * Cuts a byte stream into lines. `onLine` gets each line without its newline, `onEmpty` the number of empty lines in a row;
 * `onTooLong` is called once, then nothing more is read.
 */
export class LineReader {
  readonly #options: LineOptions;
  readonly #pieces: Pieces;
  #isStopped = false;

  constructor(options: LineOptions) {
    this.#options = options;
    this.#pieces = new Pieces(options.maxBytes);
  }

  /** Bytes held of the line that is not complete. */
  get pendingBytes(): number {
    return this.#pieces.bytes;
  }

  /** Each step is one line, with what `onLine` answers. */
  *push(chunk: Buffer): Generator<undefined | Promise<unknown>> {
    const { maxBytes, onLine, onEmpty, onTooLong } = this.#options;
    const pieces = this.#pieces;
    let start = 0;
    while (!this.#isStopped) {
      const from = start;
      // A flood of empty lines costs only a look at each byte.
      if (pieces.bytes === 0) while (chunk[start] === NEWLINE) start++;
      if (start > from) onEmpty?.(start - from);
      const end = chunk.indexOf(NEWLINE, start);
      const piece = chunk.subarray(start, end === -1 ? undefined : end);
      if (pieces.bytes + piece.length > maxBytes) {
        this.stop();
        onTooLong();
        return;
      }
      pieces.push(piece);
      if (end === -1) return;
      const line = pieces.take();
      if (line.length > 0) yield onLine(line);
      start = end + 1;
    }
  }

  /** Forgets the line that is not complete and reads nothing more. */
  stop(): void {
    this.#isStopped = true;
    this.#pieces.take();
  }
}

export type StdioInbox = ReturnType<typeof createStdioInbox>;

/** `onTooLarge`: the connection cannot go on, since the error belongs to no single request. `onNote` gets one line. */
export function createStdioInbox({
  server,
  maxMessageBytes,
  onMessage,
  onTooLarge,
  onNote,
  onText,
}: {
  server: string;
  maxMessageBytes: number;
  onMessage: (message: JSONRPCMessage) => void;
  onTooLarge: (error: TooLarge) => void;
  onNote: (note: string) => void;
  /** Gets the start of a line that is no message. */
  onText?: ((line: string) => void) | undefined;
}) {
  /** Our requests without an answer. The SDK numbers its requests, and reads the id of an answer as a number. */
  const asked = new Map<string, string>();
  let isStopped = false;

  const to: Receiver = {
    server,
    batches: () => false,
    asked: () => asked,
    isOver: () => isStopped,
    hand: (message) => {
      if (!("method" in message) && message.id !== undefined) asked.delete(String(Number(message.id)));
      onMessage(message);
    },
    noise: new Noise(onNote),
    onNoise: (line) => {
      const start = startOf(line, NOTED_BYTES);
      onText?.(start);
      onNote(`printed a line that is not a JSON-RPC 2.0 message: ${start}`);
    },
    onNote,
  };
  const reader = new LineReader({
    maxBytes: maxMessageBytes,
    onLine: (line) => receive(line, to),
    onEmpty: (lines) => to.noise.add(lines, lines),
    onTooLong: () => giveUp(new TooLarge(maxMessageBytes)),
  });
  const stop = (): void => {
    isStopped = true;
    reader.stop();
    slot.end();
  };
  const giveUp = (error: TooLarge): void => {
    stop();
    onTooLarge(error);
  };
  const slot = openLong(giveUp);

  return {
    /** Hands on the messages of a piece, one a step, for `readInTurn`. Throws `TooLarge`, as a step does. */
    *push(chunk: Buffer): Generator<undefined | Promise<unknown>> {
      yield* reader.push(chunk);
      yield slot.hold(reader.pendingBytes);
    },
    /** A message of ours is sent: a request is open from now on, and a cancelled request is no longer open. */
    sent: (message: JSONRPCMessage): void => {
      const cancelled = cancelledRequest(message);
      if (isRequest(message)) asked.set(String(message.id), message.method);
      else if (cancelled !== undefined) asked.delete(String(cancelled));
    },
    /** Nothing more comes: an incomplete message waits for nothing any more. */
    end: () => slot.end(),
    /** Forgets everything and reads nothing more. */
    stop,
  };
}
