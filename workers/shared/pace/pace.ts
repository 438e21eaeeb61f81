/**
 * How often and how many at a time something happens that a server or background work would do without end: runs of a task,
 * background tasks, lines in the log, progress, repeated texts. And how soon the process of a server is ended.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

/** The interval is the shortest again after this time without a request or run, or after the interval if that is longer. */
const QUIET_MS = 10_000;

export type Throttle = ReturnType<typeof createThrottle>;

/**
 * Runs `task` soon after a request, once for all requests that come meanwhile. Runs never overlap, and start at least
 * `intervalMs` apart. A flood of requests costs one run in each interval; the last request is never lost. While requests
 * keep coming, the interval doubles with each run up to `longestMs`; it is short again after a quiet time.
 */
export function createThrottle(options: {
  /** Time from the first request to the run, to gather a burst. */
  delayMs: number;
  intervalMs: number;
  /** The longest interval. Absent: the interval does not grow. */
  longestMs?: number;
  /** If the task answers a promise, that promise must never reject. */
  task: () => unknown;
}) {
  const { delayMs, intervalMs, longestMs = intervalMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let lastRunAt = -Infinity;
  /** Time of the last request or run. */
  let busyAt = -Infinity;
  /** Least time from the last run to the next. */
  let pauseMs = intervalMs;
  /** No run starts before. */
  let earliestAt = -Infinity;
  let isFresh = true;
  let running = false;
  let again = false;
  let stopped = false;

  const schedule = (): void => {
    timer ??= setTimeout(
      run,
      Math.max(delayMs, Math.max(lastRunAt + pauseMs, earliestAt) - performance.now()),
    );
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
    /** `leastMs`: no run starts sooner, whoever requests it. */
    request(leastMs = 0): void {
      if (stopped) return;
      const now = performance.now();
      if (leastMs > 0 && now + leastMs > earliestAt) {
        earliestAt = now + leastMs;
        clearTimeout(timer);
        timer = undefined;
      }
      if (!running && now - busyAt >= Math.max(QUIET_MS, pauseMs)) {
        isFresh = true;
        pauseMs = intervalMs;
      }
      busyAt = now;
      if (running) again = true;
      else schedule();
    },
    stop(): void {
      stopped = true;
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

export type Gate = ReturnType<typeof createGate>;

/** Background work stands aside for at most this long at a time: what it stands aside for may take minutes. */
const ASIDE_MS = 250;

/**
 * Lets at most `size` background tasks run at a time; the others wait in order. A task that becomes urgent stops
 * waiting, so a task that a user waits for never queues behind background work. Between their steps, background tasks stand
 * aside while somebody uses what they share.
 */
export function createGate(size: number) {
  let running = 0;
  let uses = 0;
  const waiting: (() => void)[] = [];
  const aside = new Set<() => void>();
  const leave = (): void => {
    running--;
    waiting.shift()?.();
  };
  return {
    /** Settles when the task may run, or at once when `urgent` fires. The caller calls the answer when the task has ended. */
    enter: (urgent: AbortSignal): Promise<() => void> =>
      new Promise((resolve) => {
        const pass = (): void => {
          urgent.removeEventListener("abort", jump);
          running++;
          resolve(leave);
        };
        const jump = (): void => {
          const at = waiting.indexOf(pass);
          if (at !== -1) waiting.splice(at, 1);
          resolve(() => undefined);
        };
        if (urgent.aborted) return jump();
        if (running < size) return pass();
        waiting.push(pass);
        urgent.addEventListener("abort", jump, { once: true });
      }),
    /** Somebody waits from now on, until the answer is called. */
    use: (): (() => void) => {
      uses++;
      return () => {
        uses--;
        if (uses === 0) for (const go of [...aside]) go();
      };
    },
    /** Settles when nobody waits, when `urgent` fires, or after a moment. Undefined: the task may go on at once. */
    aside: (urgent: AbortSignal): Promise<void> | undefined => {
      if (uses === 0 || urgent.aborted) return undefined;
      return new Promise((resolve) => {
        const go = (): void => {
          clearTimeout(timer);
          aside.delete(go);
          urgent.removeEventListener("abort", go);
          resolve();
        };
        const timer = setTimeout(go, ASIDE_MS);
        aside.add(go);
        urgent.addEventListener("abort", go, { once: true });
      });
    },
  };
}

/**
 * Bounds what one server may write into the log: a number of lines and characters in each window of time. Further lines
 * are not composed but counted, and reported in one line when the window is over.
 */
export function createLineBudget(
  limits: { lines: number; chars: number; windowMs: number },
  onDropped: (count: number) => void,
) {
  let opensAt = -Infinity;
  let lines = 0;
  let chars = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;

  const reportDropped = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (dropped > 0) onDropped(dropped);
    dropped = 0;
  };
  const open = (now: number): void => {
    reportDropped();
    opensAt = now;
    ({ lines, chars } = limits);
  };
  const drop = (now: number): void => {
    // One line that is too long ends the window: composing further lines would cost as much as writing them.
    lines = 0;
    dropped++;
    timer ??= setTimeout(reportDropped, opensAt + limits.windowMs - now).unref();
  };

  return {
    /** Composes the line and hands it on, or counts it as dropped. */
    write: (compose: () => string, sink: (line: string) => void) => {
      const now = performance.now();
      if (now - opensAt >= limits.windowMs) open(now);
      if (lines === 0) return drop(now);
      const line = compose();
      if (line.length > chars) return drop(now);
      lines--;
      chars -= line.length;
      sink(line);
    },
    /** Reports dropped lines at once, without waiting for the end of the window. */
    close: reportDropped,
  };
}

/**
 * Counts the requests of one server. Real servers send a ping now and then; one that asks without end would fill whoever
 * answers it.
 */
export class RequestWindow {
  #endsAt = -Infinity;
  #count = 0;

  /** Counts one more at `now`, in milliseconds. Answers what the server did, if that is too much, to follow its name. */
  add(now: number): string | undefined {
    if (now >= this.#endsAt) {
      this.#endsAt = now + LIMITS.serverRequestsWindowMs;
      this.#count = 0;
    }
    if (++this.#count <= LIMITS.serverRequestsInWindow) return undefined;
    const most = LIMITS.serverRequestsInWindow.toLocaleString("en");
    return `sent more than ${most} requests within ${LIMITS.serverRequestsWindowMs / 1_000} s`;
  }
}

/** Passes progress on at most once every `intervalMs`: the first at once, then the newest of each interval. */
export function createProgressPacer<T>(intervalMs: number, pass: (progress: T) => void) {
  let timer: NodeJS.Timeout | undefined;
  let newest: { progress: T } | undefined;
  let stopped = false;
  const passNow = (progress: T): void => {
    newest = undefined;
    pass(progress);
    timer = setTimeout(() => {
      timer = undefined;
      if (newest) passNow(newest.progress);
    }, intervalMs);
  };
  return {
    push: (progress: T): void => {
      if (stopped) return;
      if (timer) newest = { progress };
      else passNow(progress);
    },
    /** Ends the passing on, because the call has ended. */
    stop: (): void => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Remembers recent texts. A server may send new texts without end, so only `most` are remembered: a text that comes
 * again after that many others counts as new.
 */
export class Recent {
  readonly #texts = new Set<string>();
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  /** True if the text was not remembered; it is from now on. */
  isNew(text: string): boolean {
    const isNew = !this.#texts.delete(text);
    this.#texts.add(text);
    if (this.#texts.size > this.#most) {
      const { value: oldest } = this.#texts.values().next();
      if (oldest !== undefined) this.#texts.delete(oldest);
    }
    return isNew;
  }
}

/** How a session leaves a server that sessions share. */
export type Leave =
  /** The server may be wanted again: it stays for the idle time. */
  | "keep"
  /** It ends when no session uses it any more. */
  | "now"
  /** It does not work: no other session gets it from now on, and it ends when none uses it. */
  | "retire"
  /** It ends, whoever uses it. */
  | "end";

/** Milliseconds until SIGTERM and until SIGKILL, both from the end of stdin. */
export interface CloseTimes {
  termMs: number;
  killMs: number;
  /** Whether nobody waits for the end of a process that was sent SIGKILL. */
  isLast?: boolean;
  /** What becomes of a server that sessions share, to which no time applies. Absent: `keep`. */
  leave?: Leave;
}

/** For a connection that ends with the session, or before it was of use. */
export const SHUTDOWN_TIMES: CloseTimes = { termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs };

/**
 * For a server that was never called and is not wanted any more: it has nothing to finish. SIGTERM first, because a
 * client of a container passes it on, for which a busy machine needs more than some milliseconds.
 */
export const UNUSED_TIMES: CloseTimes = { termMs: 0, killMs: LIMITS.shutdownTermMs, isLast: true };
