/**
 * A timer that counts the time in which this process runs. Ctrl-Z, or a lid that is closed, stops the process but not the clock,
 * and Node runs timers before it reads what has come meanwhile: an answer that lies in the pipe would come too late.
 */

/** The time is counted in steps: of a step in which the process stood still no more counts than the step should have taken. */
const STEP_MS = 5_000;
/** Timers are not that late in a process that runs: what it does is done in slices. */
const LATE_MS = 1_000;

export interface AwakeTimer {
  /** Answers how many milliseconds were counted. */
  stop(): number;
}

/**
 * Calls `onOver` after so many milliseconds. A standstill that would be the end leaves another five seconds, once: on a machine
 * that is too busy each step may be late, and the time ends there, too. Does not keep the process alive.
 */
export function startAwakeTimer(ms: number, onOver: () => void): AwakeTimer {
  const wholeMs = Math.max(0, ms);
  let leftMs = wholeMs;
  let stepMs = 0;
  let since = 0;
  let timer: NodeJS.Timeout | undefined;
  let isSpared = false;
  const count = (): void => {
    const ranMs = performance.now() - since;
    const isLate = ranMs > stepMs + LATE_MS;
    leftMs -= isLate ? stepMs : ranMs;
    if (!isLate || leftMs > 0 || isSpared) return;
    isSpared = true;
    leftMs = STEP_MS;
  };
  const run = (): void => {
    stepMs = Math.min(leftMs, STEP_MS);
    since = performance.now();
    timer = setTimeout(() => {
      count();
      timer = undefined;
      if (leftMs > 0) run();
      else onOver();
    }, stepMs).unref();
  };
  run();
  return {
    stop: () => {
      if (timer) count();
      clearTimeout(timer);
      timer = undefined;
      return wholeMs - leftMs;
    },
  };
}
