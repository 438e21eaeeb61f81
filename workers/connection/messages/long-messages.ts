/**
 * Limits how many long messages come in at a time, over all servers of a thread, so that their bytes stay bounded. A
 * reader that finds no slot free stops reading, which holds its server up. A reader that has a slot and hardly uses it
 * loses the slot to readers that wait.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { warmHeavy } from "./heavy.ts";
import { keepHeavyCode } from "./heavy-thread.ts";
import { LONG_BYTES as READ_APART_BYTES } from "./incoming.ts";
import { type TooLarge, tooSlow } from "./too-large.ts";

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
    keepHeavyCode();
    return ofThisThread.open(giveUp);
  },
};
