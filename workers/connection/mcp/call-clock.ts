/**
 * The clock of one call: the time without an answer or progress, and the cap that progress does not renew. Both stand
 * still while the server waits for the user, which the timers of the SDK cannot.
 */
import type { AskPauses } from "../asks/asks.ts";

export interface CallClock {
  /** Aborts with `reason` when the time is over, and with the caller's signal until the clock is stopped. */
  readonly signal: AbortSignal;
  /** Progress came. */
  renew(): void;
  stop(): void;
}

export interface CallClockOptions {
  /** The caller's signal. */
  caller: AbortSignal;
  limitMs: number;
  capMs: number;
  /** Absent: the clock never stands still. */
  pauses: AskPauses | undefined;
  /** The reason with which the signal aborts. */
  reason: () => unknown;
}

export function startCallClock({ caller, limitMs, capMs, pauses, reason }: CallClockOptions): CallClock {
  const expired = new AbortController();
  let limitLeft = limitMs;
  let capLeft = capMs;
  let timer: NodeJS.Timeout | undefined;
  let since = 0;

  const hold = (): void => {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    const ranMs = performance.now() - since;
    limitLeft -= ranMs;
    capLeft -= ranMs;
  };
  const run = (): void => {
    if (timer !== undefined || pauses?.isOpen || expired.signal.aborted) return;
    since = performance.now();
    timer = setTimeout(() => expired.abort(reason()), Math.max(0, Math.min(limitLeft, capLeft)));
  };
  // A listener costs a tenth of what a signal of two signals costs.
  const giveUp = (): void => expired.abort(caller.reason);
  if (caller.aborted) giveUp();
  caller.addEventListener("abort", giveUp, { once: true });
  const unwatch = pauses?.watch(() => (pauses.isOpen ? hold() : run()));
  run();
  return {
    signal: expired.signal,
    renew: () => {
      hold();
      limitLeft = limitMs;
      run();
    },
    stop: () => {
      caller.removeEventListener("abort", giveUp);
      unwatch?.();
      hold();
    },
  };
}
