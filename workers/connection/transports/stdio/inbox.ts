/**
 * What a server prints on its stdout, as messages: lines, each parsed within the limits. Knows which of our requests
 * are open, so that a refused answer fails its request alone, and a long answer to none of them is not even parsed.
 */
import type { JSONRPCMessage } from "../../mcp/wire/wire.ts";
import {
  cancelledRequest,
  isRequest,
  longMessages,
  longTurn,
  MEASURED_BYTES,
  readIncoming,
  refusalOf,
  TooLarge,
} from "../../messages/messages.ts";
import { createLineReader, NEWLINE } from "./line-reader.ts";

export interface StdioInbox {
  /** A promise: nothing more is to be pushed until it settles. */
  push(chunk: Buffer): Promise<void> | undefined;
  /** A message of ours is on its way: a request is open from now on, a cancelled one no longer. */
  sent(message: JSONRPCMessage): void;
  /** Nothing more is read. */
  stop(): void;
}

export interface InboxOptions {
  maxMessageBytes: number;
  onMessage: (message: JSONRPCMessage) => void;
  /** The connection cannot go on: no request alone can be failed for this. */
  onTooLarge: (error: TooLarge) => void;
  /** One line about something odd that is not an error. */
  onNote: (note: string) => void;
}

/** Whoever writes the note down cuts it, after taking secrets out. */
const NOTED_BYTES = 16 * 1024;

export function createStdioInbox({
  maxMessageBytes,
  onMessage,
  onTooLarge,
  onNote,
}: InboxOptions): StdioInbox {
  /** Ids of our requests that have no answer yet. The SDK counts them, and reads the id of an answer as a number. */
  const asked = new Set<number>();

  const hand = (message: JSONRPCMessage): void => {
    if (!("method" in message) && message.id !== undefined) asked.delete(Number(message.id));
    onMessage(message);
  };

  const onLine = (line: Buffer): void => {
    const incoming = readIncoming(line, { batches: false, isAsked: (id) => asked.has(Number(id)) });
    switch (incoming.kind) {
      case "messages":
        for (const message of incoming.messages) hand(message);
        break;
      case "noise":
        onNote(`printed a line that is not a JSON-RPC 2.0 message: ${line.toString("utf8", 0, NOTED_BYTES)}`);
        break;
      case "stray":
        onNote(`answered a request that is not open, with ${line.length} bytes`);
        break;
      case "refused":
        if (incoming.id === undefined) giveUp(incoming.error);
        else hand(refusalOf(incoming.id, incoming.error));
    }
  };

  const reader = createLineReader({
    maxBytes: maxMessageBytes,
    onLine,
    onTooLong: () => giveUp(new TooLarge(maxMessageBytes)),
  });
  const stop = (): void => {
    reader.stop();
    place.end();
  };
  const giveUp = (error: TooLarge): void => {
    stop();
    onTooLarge(error);
  };
  const place = longMessages.open(giveUp);
  const read = (chunk: Buffer): Promise<void> | undefined => {
    reader.push(chunk);
    return place.hold(reader.pendingBytes);
  };

  return {
    push: (chunk) => {
      const endsLong = reader.pendingBytes + chunk.length > MEASURED_BYTES && chunk.includes(NEWLINE);
      const turn = endsLong ? longTurn() : undefined;
      return turn ? turn.then(() => read(chunk)) : read(chunk);
    },
    sent: (message) => {
      const cancelled = cancelledRequest(message);
      if (isRequest(message)) asked.add(Number(message.id));
      else if (cancelled !== undefined) asked.delete(Number(cancelled));
    },
    stop,
  };
}
