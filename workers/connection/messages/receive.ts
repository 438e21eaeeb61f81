/**
 * The one place where the bytes of a complete message become messages that are handed on, whatever stream they came by: a
 * line over stdio, a JSON body, an event. A caller that gets a promise reads nothing more of that stream until the promise
 * settles, so that the order of messages stays, also while a long one is in the thread for it.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { LongMessages, type LongReader } from "../../shared/pace/long-messages.ts";
import { createReader, inTurn } from "../../shared/pace/turns.ts";
import type { JSONRPCMessage } from "../mcp/wire/wire.ts";
import { readHeavy, warmHeavy } from "./heavy.ts";
import { rememberHeavyFile } from "./heavy-thread.ts";
import {
  type Incoming,
  mayBeMessage,
  LONG_BYTES as READ_APART_BYTES,
  readShort,
  refusalOf,
} from "./incoming.ts";
import { LongBytes, type Received } from "./pieces.ts";
import { type Noise, type TooLarge, tooSlow } from "./too-large.ts";

/** One connection whose messages are read. */
export interface MessageStream {
  server: string;
  /** Whether several messages may come as one array: in MCP 2025-03-26, over HTTP. */
  batches: () => boolean;
  /** Our open requests: ids as texts, and their methods. */
  asked: () => ReadonlyMap<string, string>;
  /** Whether the connection is closed. */
  isOver: () => boolean;
  hand: (message: JSONRPCMessage) => void;
  /** Counts what is no message. */
  noise: Noise;
  /** Gets one line about something odd that is not an error. */
  onNote: (note: string) => void;
}

export interface Receiver extends MessageStream {
  /** Gets what is no message, unless too much of that came. */
  onNoise: (received: Received) => void;
}

/** Bytes of the messages; undefined: nobody traces any. Messages of one batch have the size of all of it. */
let sizes: WeakMap<JSONRPCMessage, number> | undefined;

export function measureMessages(): void {
  sizes ??= new WeakMap();
}

/** Undefined: the message was made here, or came before `measureMessages`. */
export const sizeOf = (message: JSONRPCMessage): number | undefined => sizes?.get(message);

/** What a message begins reaches its end, or its next wait, before the next message is read. */
const HANDED = Promise.resolve();

/**
 * In place of an answer that is too large its request gets the error. Throws `TooLarge`, or rejects with it, for any other
 * message that is too large, and for too much noise.
 */
export function receive(received: Received, to: Receiver): undefined | Promise<unknown> {
  if (received instanceof LongBytes) return receiveLong(received, to);
  if (to.noise.isLoud && !received.includes(MARK)) {
    to.noise.add(1, received.length);
    return undefined;
  }
  return settle(readShort(received, { batches: to.batches() }), received, to);
}

async function receiveLong(received: LongBytes, to: Receiver): Promise<void> {
  const { server, asked, isOver, onNote } = to;
  const batches = to.batches();
  const incoming: Incoming = mayBeMessage(received.head, { batches })
    ? await readHeavy(received, { server, batches, asked: asked(), isOver, onNote })
    : { kind: "noise" };
  if (!isOver()) await settle(incoming, received, to);
}

function settle(incoming: Incoming, received: Received, to: Receiver): undefined | Promise<unknown> {
  switch (incoming.kind) {
    case "messages":
      if (sizes) for (const message of incoming.messages) sizes.set(message, received.length);
      return handAll(incoming.messages, to);
    case "noise":
      to.noise.add(1, received.length);
      to.onNoise(received);
      return undefined;
    case "stray":
      to.onNote(`answered a request that is not open, with ${received.length} bytes`);
      return undefined;
    case "refused":
      if (incoming.id === undefined) throw incoming.error;
      to.hand(refusalOf(incoming.id, incoming.error));
      return HANDED;
  }
}

function handAll(messages: readonly JSONRPCMessage[], { hand }: Receiver): Promise<unknown> {
  const [only] = messages;
  if (messages.length > 1) return handBatch(messages, hand);
  if (only) hand(only);
  return HANDED;
}

async function handBatch(messages: readonly JSONRPCMessage[], hand: Receiver["hand"]): Promise<void> {
  const reader = createReader();
  for (const message of messages) {
    hand(message);
    await inTurn(reader);
  }
}

/** What each message holds. A key may be written otherwise in JSON, which no server does that also writes noise. */
const MARK = Buffer.from('"jsonrpc"');

/** The one of this thread: it guards the memory of the thread. */
const longMessages = new LongMessages(LIMITS.longMessagesAtATime, {
  longBytes: READ_APART_BYTES,
  onLong: warmHeavy,
});

/** For one stream. `giveUp` is called at most once, when the stream is too slow while others wait. */
export function openLong(giveUp: (error: TooLarge) => void): LongReader {
  rememberHeavyFile();
  return longMessages.open((bytes) => giveUp(tooSlow(bytes)));
}
