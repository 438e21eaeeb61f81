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

/** The reader of one stream of messages. */
export interface LongReader {
  /**
   * The reader holds this many bytes of a message that is not complete. If this returns a promise, nothing more may be
   * read until the promise settles.
   */
  hold(bytes: number): Promise<void> | undefined;
  /** Nothing more comes, so the reader waits for nothing any more. It may still hold what came. */
  closed(): void;
  /** The reader holds nothing and waits for nothing any more. */
  end(): void;
}

export interface LongMessages {
  /** `giveUp`: called at most once, when the reader loses its slot to another one. The reader must stop then. */
  open(giveUp: (error: TooLarge) => void): LongReader;
}

/** Shorter messages need no slot. */
const LONG_BYTES = 1024 * 1024;
/** While others wait, a reader with a slot must be faster than this on average, after `SLOW_AFTER_MS`. */
const SLOW_BYTES_A_SECOND = 256 * 1024;
const SLOW_AFTER_MS = 10_000;

interface State {
  giveUp: (error: TooLarge) => void;
  bytes: number;
  /** Time and bytes of the reader when it got its slot; undefined: it has no slot. */
  slot: { sinceMs: number; fromBytes: number } | undefined;
  /** Lets the reader go on. */
  resume: (() => void) | undefined;
  isOver: boolean;
}

export function createLongMessages(
  slots: number,
  now: () => number = () => performance.now(),
  onLong: () => void = () => undefined,
): LongMessages {
  const withSlot = new Set<State>();
  const waiting = new Set<State>();
  let timer: NodeJS.Timeout | undefined;

  const take = (state: State): void => {
    withSlot.add(state);
    state.slot = { sinceMs: now(), fromBytes: state.bytes };
  };
  const leave = (state: State): void => {
    if (withSlot.delete(state)) {
      state.slot = undefined;
      const [next] = waiting;
      if (next) {
        waiting.delete(next);
        take(next);
        next.resume?.();
      }
    }
    if (waiting.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
  const end = (state: State): void => {
    state.isOver = true;
    waiting.delete(state);
    state.resume?.();
    leave(state);
  };
  const isSlow = ({ bytes, slot }: State): boolean => {
    const tookMs = slot ? now() - slot.sinceMs : 0;
    const came = bytes - (slot?.fromBytes ?? 0);
    return tookMs >= SLOW_AFTER_MS && came * 1_000 < SLOW_BYTES_A_SECOND * tookMs;
  };
  const giveUpSlow = (): void => {
    for (const state of [...withSlot].filter(isSlow)) {
      end(state);
      state.giveUp(tooSlow(state.bytes));
    }
  };
  const wait = (state: State): Promise<void> => {
    waiting.add(state);
    timer ??= setInterval(giveUpSlow, SLOW_AFTER_MS / 4).unref();
    return new Promise((resolve) => {
      state.resume = resolve;
    });
  };

  return {
    open: (giveUp) => {
      const state: State = { giveUp, bytes: 0, slot: undefined, resume: undefined, isOver: false };
      return {
        hold: (bytes) => {
          if (bytes > READ_APART_BYTES && state.bytes <= READ_APART_BYTES) onLong();
          state.bytes = bytes;
          if (state.isOver) return undefined;
          if (bytes < LONG_BYTES) {
            if (state.slot) leave(state);
            return undefined;
          }
          if (state.slot) return undefined;
          if (withSlot.size >= slots) return wait(state);
          take(state);
          return undefined;
        },
        closed: () => {
          state.isOver = true;
          waiting.delete(state);
          state.resume?.();
        },
        end: () => end(state),
      };
    },
  };
}

const ofThisThread = createLongMessages(LIMITS.longMessagesAtATime, undefined, warmHeavy);

/** The one of this thread: it guards the memory of the thread. */
export const longMessages: LongMessages = {
  open: (giveUp) => {
    rememberHeavyFile();
    return ofThisThread.open(giveUp);
  },
};
