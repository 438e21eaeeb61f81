/**
 * Finds a worker that hangs: asks it again and again and reports, once, when one question stays unanswered. A
 * pause of this process itself (a suspended machine, a stalled main thread) is not held against the worker.
 */
export interface Heartbeat {
  stop(): void;
}

export function startHeartbeat(options: {
  /** How long a question may stay unanswered; asked twice as often. */
  timeoutMs: number;
  ask: () => Promise<unknown>;
  onHang: () => void;
}): Heartbeat {
  const intervalMs = options.timeoutMs / 2;
  let askedAt: number | undefined;
  let lastTickAt = performance.now();
  let stopped = false;

  const ask = (now: number): void => {
    askedAt = now;
    const answered = (): void => {
      askedAt = undefined;
    };
    // A rejection means that the worker is gone, which is told elsewhere.
    options.ask().then(answered, answered);
  };
  const tick = (): void => {
    const now = performance.now();
    const late = now - lastTickAt > 2 * intervalMs;
    lastTickAt = now;
    if (askedAt === undefined) {
      ask(now);
      return;
    }
    if (late) askedAt = now;
    if (now - askedAt < options.timeoutMs) return;
    // The answer may lie in the queue behind this timer: let it be read first.
    setImmediate(() =>
      setImmediate(() => {
        if (askedAt === undefined || stopped) return;
        stop();
        options.onHang();
      }),
    );
  };
  const timer = setInterval(tick, intervalMs);
  timer.unref();
  const stop = (): void => {
    stopped = true;
    clearInterval(timer);
  };
  return { stop };
}
