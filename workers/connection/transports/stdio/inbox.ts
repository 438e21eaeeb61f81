/**
 * Turns the stdout of a server into messages: one message a line, each parsed within the limits. Knows which of our
 * requests are open, so that a refused answer fails only its own request, and a long answer to no open request is not
 * even parsed.
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
  /** If this returns a promise, nothing more may be pushed until the promise settles. */
  push(chunk: Buffer): Promise<void> | undefined;
  /** A message of ours is sent: a request is open from now on, and a cancelled request is no longer open. */
  sent(message: JSONRPCMessage): void;
  /** Forgets everything and reads nothing more. */
  stop(): void;
}

export interface InboxOptions {
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
  maxMessageBytes,
  onMessage,
  onTooLarge,
  onNote,
}: InboxOptions): StdioInbox {
  /** Ids of our requests without an answer. The SDK numbers its requests, and reads the id of an answer as a number. */
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
    slot.end();
  };
  const giveUp = (error: TooLarge): void => {
    stop();
    onTooLarge(error);
  };
  const slot = longMessages.open(giveUp);
  const read = (chunk: Buffer): Promise<void> | undefined => {
    reader.push(chunk);
    return slot.hold(reader.pendingBytes);
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
