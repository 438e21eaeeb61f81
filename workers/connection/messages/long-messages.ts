/**
 * Lets only some long messages come in at a time, over all servers of a thread, so that their bytes stay bounded.
 * A reader that finds no place free stops reading, which holds its server up; who has a place and hardly uses it
 * loses it to those that wait.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type TooLarge, tooSlow } from "./too-large.ts";

/** What reads one stream of messages. */
export interface LongReader {
  /**
   * So many bytes are held of a message that has not come to its end. A promise: nothing more is to be read until it
   * settles.
   */
  hold(bytes: number): Promise<void> | undefined;
  /** Nothing is held any more, and nothing waited for. */
  end(): void;
}

export interface LongMessages {
  /** `giveUp`: called at most once, when the reader has to leave its place to another; it must stop then. */
  open(giveUp: (error: TooLarge) => void): LongReader;
}

/** Shorter messages come in as they like. */
const LONG_BYTES = 1024 * 1024;
/** Who has a place and waiters behind it must be faster than this, on the average after the first seconds. */
const SLOW_BYTES_A_SECOND = 256 * 1024;
const SLOW_AFTER_MS = 10_000;

interface State {
  giveUp: (error: TooLarge) => void;
  bytes: number;
  /** Since when it has a place, and with how many bytes. */
  place: { sinceMs: number; fromBytes: number } | undefined;
  /** Goes on reading. */
  resume: (() => void) | undefined;
  isOver: boolean;
}

export function createLongMessages(
  places: number,
  now: () => number = () => performance.now(),
): LongMessages {
  const inPlace = new Set<State>();
  const waiting = new Set<State>();
  let timer: NodeJS.Timeout | undefined;

  const take = (state: State): void => {
    inPlace.add(state);
    state.place = { sinceMs: now(), fromBytes: state.bytes };
  };
  const leave = (state: State): void => {
    if (inPlace.delete(state)) {
      state.place = undefined;
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
  const isSlow = ({ bytes, place }: State): boolean => {
    const tookMs = place ? now() - place.sinceMs : 0;
    const came = bytes - (place?.fromBytes ?? 0);
    return tookMs >= SLOW_AFTER_MS && came * 1_000 < SLOW_BYTES_A_SECOND * tookMs;
  };
  const giveUpSlow = (): void => {
    for (const state of [...inPlace].filter(isSlow)) {
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
      const state: State = { giveUp, bytes: 0, place: undefined, resume: undefined, isOver: false };
      return {
        hold: (bytes) => {
          state.bytes = bytes;
          if (state.isOver) return undefined;
          if (bytes < LONG_BYTES) {
            if (state.place) leave(state);
            return undefined;
          }
          if (state.place) return undefined;
          if (inPlace.size >= places) return wait(state);
          take(state);
          return undefined;
        },
        end: () => {
          if (!state.isOver) end(state);
        },
      };
    },
  };
}

/** Of this thread: what it guards is the thread's memory, so there is one. */
export const longMessages: LongMessages = createLongMessages(LIMITS.longMessagesAtATime);
