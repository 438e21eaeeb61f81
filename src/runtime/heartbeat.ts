/**
 * Finds a worker that hangs: asks the worker at intervals and reports, once, a question that stays unanswered. A pause of
 * this process itself (a suspended machine, a stalled main thread) does not count.
 */
export interface Heartbeat {
  stop(): void;
}

export function startHeartbeat(options: {
  /** The longest time that a question may stay unanswered. The interval of questions is half of it. */
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
    // A rejection means that the worker has ended, which keep-worker.ts handles.
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
    // The answer may be in the queue behind this timer: it is read first.
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
