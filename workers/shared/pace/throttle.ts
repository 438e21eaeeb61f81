/**
 * Runs `task` soon after a request, once for all requests that come meanwhile. Runs never overlap, and start at least
 * `intervalMs` apart. A flood of requests costs one run in each interval; the last request is never lost. While requests
 * keep coming, the interval doubles with each run up to `longestMs`; it is short again after a quiet time.
 */
export interface Throttle {
  request(): void;
  stop(): void;
}

/** The interval is the shortest again after this time without a request or run, or after the interval if that is longer. */
export const QUIET_MS = 10_000;

export function createThrottle(options: {
  /** Time from the first request to the run, to gather a burst. */
  delayMs: number;
  intervalMs: number;
  /** The longest interval. Absent: the interval does not grow. */
  longestMs?: number;
  /** If the task answers a promise, that promise must never reject. */
  task: () => unknown;
}): Throttle {
  const { delayMs, intervalMs, longestMs = intervalMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let lastRunAt = -Infinity;
  /** Time of the last request or run. */
  let busyAt = -Infinity;
  /** Least time from the last run to the next. */
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
