/** The clocks beside an open connection: one expires when nothing uses the connection, one pings the server. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export interface IdleClock {
  /** A use begins: the clock stands still until every use has ended. */
  begin(): void;
  end(): void;
  /** A connection is open: the clock runs if nothing uses it. */
  start(): void;
  stop(): void;
  /** Runs `task` once, as soon as no use is open. */
  whenUnused(task: () => void): void;
}

export function createIdleClock(options: { timeoutMs: () => number; onExpired: () => void }): IdleClock {
  let uses = 0;
  let open = false;
  let timer: NodeJS.Timeout | undefined;
  let waiting: (() => void)[] = [];
  const restart = (): void => {
    clearTimeout(timer);
    const timeoutMs = options.timeoutMs();
    if (open && uses === 0 && timeoutMs > 0)
      timer = setTimeout(options.onExpired, Math.min(timeoutMs, LIMITS.longestTimerMs));
  };
  return {
    begin: () => {
      uses++;
      clearTimeout(timer);
    },
    end: () => {
      uses--;
      restart();
      if (uses > 0) return;
      const tasks = waiting;
      waiting = [];
      for (const task of tasks) task();
    },
    start: () => {
      open = true;
      restart();
    },
    stop: () => {
      open = false;
      clearTimeout(timer);
    },
    whenUnused: (task) => {
      if (uses === 0) task();
      else waiting.push(task);
    },
  };
}

/** Pings every `LIMITS.healthCheckMs`; `onSick` gets the error of a ping that failed. Answers how to stop it. */
export function startHealthCheck(
  ping: (timeoutMs: number) => Promise<void>,
  onSick: (error: unknown) => void,
): () => void {
  const timer = setInterval(() => {
    ping(LIMITS.healthAnswerMs).catch(onSick);
  }, LIMITS.healthCheckMs);
  return () => clearInterval(timer);
}
