/**
 * When a change of watched files is reported: once for each burst of events, after it has settled, and also for a change
 * that no event told of, because the stamps of the files are looked at. Owns the clocks. Called by: watch.ts.
 */
export interface Bursts {
  /** An event: something may have changed. Counts once `begin` has looked at the files. */
  saw(): void;
  /** Settles when the files have been looked at for the first time. */
  begin(): Promise<void>;
  /** Other files are watched from now on: the next look takes their stamps. */
  forget(): void;
  stop(): void;
}

export interface BurstOptions {
  /** The state of all files as one text. Does not reject. */
  stamps: () => Promise<string>;
  /** The first sign of a burst: `onSettled` follows. */
  onFirst: (() => void) | undefined;
  onSettled: () => void;
  settleMs: number;
  lookMs: number;
}

export function createBursts({ stamps, onFirst, onSettled, settleMs, lookMs }: BurstOptions): Bursts {
  let timer: NodeJS.Timeout | undefined;
  let looking: NodeJS.Timeout | undefined;
  let stopped = false;
  let started = false;
  /** The stamps of the files before they were read last; undefined: the next look takes them. */
  let seen: string | undefined;

  const saw = (): void => {
    if (!started) return;
    if (timer === undefined) onFirst?.();
    clearTimeout(timer);
    const settled = setTimeout(async () => {
      const now = await stamps();
      // Another event has begun the wait anew.
      if (stopped || timer !== settled) return;
      timer = undefined;
      seen = now;
      onSettled();
    }, settleMs);
    timer = settled;
    timer.unref();
  };
  const look = async (): Promise<void> => {
    const before = seen;
    const now = await stamps();
    if (stopped) return;
    if (timer === undefined && seen === before) {
      seen = now;
      if (before !== undefined && before !== now) saw();
    }
    lookAgain();
  };
  const lookAgain = (): void => {
    looking = setTimeout(look, lookMs).unref();
  };

  return {
    saw,
    begin: async () => {
      seen = await stamps();
      started = true;
      if (!stopped) lookAgain();
    },
    forget: () => {
      seen = undefined;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      clearTimeout(looking);
    },
  };
}
