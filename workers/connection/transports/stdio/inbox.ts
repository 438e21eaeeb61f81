/**
 * Turns the stdout of a server into messages: one message a line, each parsed within the limits. Knows which of our
 * requests are open, so that a refused answer fails only its own request, and a long answer to no open request is not
 * even parsed.
 */

import type { JSONRPCMessage } from "../../mcp/wire/wire.ts";
import { cancelledRequest, isRequest } from "../../messages/incoming.ts";
import { createPieces, type Received, startOf } from "../../messages/pieces.ts";
import { longMessages, type Receiver, receive } from "../../messages/receive.ts";
import { Noise, TooLarge } from "../../messages/too-large.ts";

const NEWLINE = 0x0a;

interface LineReader {
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

export interface StdioInbox {
  /** Hands on the messages of a piece, one a step, for `readInTurn`. Throws `TooLarge`, as a step does. */
  push(chunk: Buffer): Generator<undefined | Promise<unknown>>;
  /** A message of ours is sent: a request is open from now on, and a cancelled request is no longer open. */
  sent(message: JSONRPCMessage): void;
  /** Nothing more comes: an incomplete message waits for nothing any more. */
  end(): void;
  /** Forgets everything and reads nothing more. */
  stop(): void;
}

interface InboxOptions {
  server: string;
  maxMessageBytes: number;
  onMessage: (message: JSONRPCMessage) => void;
  /** The connection cannot go on: the error belongs to no single request. */
  onTooLarge: (error: TooLarge) => void;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
}

/** The log cuts a note, after it has taken secrets out. */
const NOTED_BYTES = 16 * 1024;

export function createStdioInbox({
  server,
  maxMessageBytes,
  onMessage,
  onTooLarge,
  onNote,
}: InboxOptions): StdioInbox {
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
    onNoise: (line) =>
      onNote(`printed a line that is not a JSON-RPC 2.0 message: ${startOf(line, NOTED_BYTES)}`),
    onNote,
  };
  const reader = createLineReader({
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
  const slot = longMessages.open(giveUp);

  return {
    *push(chunk) {
      yield* reader.push(chunk);
      yield slot.hold(reader.pendingBytes);
    },
    sent: (message) => {
      const cancelled = cancelledRequest(message);
      if (isRequest(message)) asked.set(String(message.id), message.method);
      else if (cancelled !== undefined) asked.delete(String(cancelled));
    },
    end: slot.end,
    stop,
  };
}
