/**
 * Runs `task` soon after it is asked for, gathering what comes meanwhile, and never more often than every
 * `intervalMs`, nor while the last run goes on. A flood costs one run an interval; the last request is never lost.
 * Where it is asked for again and again, the interval doubles with each run up to `longestMs`, until nobody has
 * asked for a while.
 */
export interface Throttle {
  request(): void;
  stop(): void;
}

/** After a run without a request for so long, or for the interval if that is longer, it is the shortest again. */
export const QUIET_MS = 10_000;

export function createThrottle(options: {
  /** From the first request to the run, to gather a burst. */
  delayMs: number;
  intervalMs: number;
  /** Of an interval that grows. Without it none does. */
  longestMs?: number;
  /** A promise that it answers never rejects. */
  task: () => unknown;
}): Throttle {
  const { delayMs, intervalMs, longestMs = intervalMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let lastRunAt = -Infinity;
  /** When there was a request or a run. */
  let busyAt = -Infinity;
  /** From the last run to the next. */
  let pauseMs = intervalMs;
  let isFresh = true;
  let running = false;
  let again = false;
  let stopped = false;

  const schedule = (): void => {
    timer ??= setTimeout(run, Math.max(delayMs, lastRunAt + pauseMs - performance.now()));
  };

  const onEnd = (): void => {
    running = false;
    busyAt = performance.now();
    if (!again || stopped) return;
    again = false;
    schedule();
  };

  function run(): void {
    timer = undefined;
    lastRunAt = performance.now();
    busyAt = lastRunAt;
    pauseMs = isFresh ? intervalMs : Math.min(pauseMs * 2, longestMs);
    isFresh = false;
    running = true;
    const done = options.task();
    if (done instanceof Promise) void done.finally(onEnd);
    else onEnd();
  }

  return {
    request() {
      if (stopped) return;
      const now = performance.now();
      if (now - busyAt >= Math.max(QUIET_MS, pauseMs)) {
        isFresh = true;
        pauseMs = intervalMs;
      }
      busyAt = now;
      if (running) again = true;
      else schedule();
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
