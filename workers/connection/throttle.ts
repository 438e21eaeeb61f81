/**
 * Runs `task` soon after it is asked for, gathering what comes meanwhile, and never more often than every
 * `intervalMs`. A flood costs one run an interval; the last request is never lost.
 */
export interface Throttle {
  request(): void;
  stop(): void;
}

export function createThrottle(options: {
  /** From the first request to the run, to gather a burst. */
  delayMs: number;
  intervalMs: number;
  task: () => void;
}): Throttle {
  let timer: NodeJS.Timeout | undefined;
  let lastRunAt = -Infinity;
  let stopped = false;
  return {
    request() {
      if (timer || stopped) return;
      const waitMs = Math.max(options.delayMs, lastRunAt + options.intervalMs - performance.now());
      timer = setTimeout(() => {
        timer = undefined;
        lastRunAt = performance.now();
        options.task();
      }, waitMs);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
