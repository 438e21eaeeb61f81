/**
 * The one place where the bytes of a complete message become messages that are handed on, whatever stream they came by: a
 * line over stdio, a JSON body, an event. A caller that gets a promise reads nothing more of that stream until the promise
 * settles, so that the order of messages stays, also while a long one is in the thread for it.
 *
 * Also limits how many long messages come in at a time, over all servers of a thread, so that their bytes stay bounded. A
 * reader that finds no slot free stops reading, which holds its server up. A reader that has a slot and hardly uses it
 * loses the slot to readers that wait.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
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
import { Blocks, type Received } from "./pieces.ts";
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

/** What a message begins reaches its end, or its next wait, before the next message is read. */
const HANDED = Promise.resolve();

/**
 * In place of an answer that is too large its request gets the error. Throws `TooLarge`, or rejects with it, for any other
 * message that is too large, and for too much noise.
 */
export function receive(received: Received, to: Receiver): undefined | Promise<unknown> {
  if (received instanceof Blocks) return receiveLong(received, to);
  if (to.noise.isLoud && !received.includes(MARK)) {
    to.noise.add(1, received.length);
    return undefined;
  }
  return settle(readShort(received, { batches: to.batches() }), received, to);
}

async function receiveLong(received: Blocks, to: Receiver): Promise<void> {
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

/** Shorter messages need no slot. */
const LONG_BYTES = 1024 * 1024;
/** While others wait, a reader with a slot must be faster than this on average, after `SLOW_AFTER_MS`. */
const SLOW_BYTES_A_SECOND = 256 * 1024;
const SLOW_AFTER_MS = 10_000;

/** The reader of one stream of messages. */
export class LongReader {
  readonly #long: LongMessages;
  /** Called at most once, when the reader loses its slot to another one. The reader must stop then. */
  readonly giveUp: (error: TooLarge) => void;
  bytes = 0;
  /** Time and bytes of the reader when it got its slot; undefined: it has no slot. */
  slot: { sinceMs: number; fromBytes: number } | undefined;
  /** Lets the reader go on. */
  resume: (() => void) | undefined;
  #isOver = false;

  constructor(long: LongMessages, giveUp: (error: TooLarge) => void) {
    this.#long = long;
    this.giveUp = giveUp;
  }

  /**
   * The reader holds this many bytes of a message that is not complete. If this returns a promise, nothing more may be
   * read until the promise settles.
   */
  hold(bytes: number): Promise<void> | undefined {
    const long = this.#long;
    if (bytes > READ_APART_BYTES && this.bytes <= READ_APART_BYTES) long.onLong();
    this.bytes = bytes;
    if (this.#isOver) return undefined;
    if (bytes >= LONG_BYTES) return this.slot ? undefined : long.take(this);
    if (this.slot) long.leave(this);
    return undefined;
  }

  /** Nothing more comes, so the reader waits for nothing any more. It may still hold what came. */
  readonly closed = (): void => {
    this.#isOver = true;
    this.#long.waiting.delete(this);
    this.resume?.();
  };

  /** The reader holds nothing and waits for nothing any more. */
  end(): void {
    this.closed();
    this.#long.leave(this);
  }

  get isSlow(): boolean {
    if (!this.slot) return false;
    const tookMs = performance.now() - this.slot.sinceMs;
    const came = this.bytes - this.slot.fromBytes;
    return tookMs >= SLOW_AFTER_MS && came * 1_000 < SLOW_BYTES_A_SECOND * tookMs;
  }
}

export class LongMessages {
  readonly #slots: number;
  /** A message became so long that it goes to the thread. */
  readonly onLong: () => void;
  readonly #withSlot = new Set<LongReader>();
  readonly waiting = new Set<LongReader>();
  #timer: NodeJS.Timeout | undefined;

  constructor(slots: number, onLong: () => void = () => undefined) {
    this.#slots = slots;
    this.onLong = onLong;
  }

  open(giveUp: (error: TooLarge) => void): LongReader {
    rememberHeavyFile();
    return new LongReader(this, giveUp);
  }

  /** Settles when the reader has a slot; undefined: it has one. */
  take(reader: LongReader): Promise<void> | undefined {
    if (this.#withSlot.size < this.#slots) {
      this.#give(reader);
      return undefined;
    }
    this.waiting.add(reader);
    this.#timer ??= setInterval(() => this.#giveUpSlow(), SLOW_AFTER_MS / 4).unref();
    return new Promise((resolve) => {
      reader.resume = resolve;
    });
  }

  leave(reader: LongReader): void {
    if (this.#withSlot.delete(reader)) {
      reader.slot = undefined;
      const [next] = this.waiting;
      if (next) {
        this.waiting.delete(next);
        this.#give(next);
        next.resume?.();
      }
    }
    if (this.waiting.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #give(reader: LongReader): void {
    this.#withSlot.add(reader);
    reader.slot = { sinceMs: performance.now(), fromBytes: reader.bytes };
  }

  #giveUpSlow(): void {
    for (const reader of [...this.#withSlot].filter(({ isSlow }) => isSlow)) {
      reader.end();
      reader.giveUp(tooSlow(reader.bytes));
    }
  }
}

/** The one of this thread: it guards the memory of the thread. */
export const longMessages = new LongMessages(LIMITS.longMessagesAtATime, warmHeavy);
