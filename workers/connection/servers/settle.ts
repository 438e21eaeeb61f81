/** Waits until no server is learning its tools. Owns the waiting requests; the supervisor says when to look again. */
export interface Settling {
  /** A server's state changed: each waiting request looks again. */
  look(): void;
  /**
   * `learning` answers the names of the servers that are waited for. Answers these names once there are none, after
   * `timeoutMs`, or when the signal fires, whichever comes first.
   */
  wait(learning: () => string[], timeoutMs: number, signal: AbortSignal): Promise<string[]>;
}

export function createSettling(): Settling {
  const waiting = new Set<() => void>();
  return {
    look: () => {
      for (const check of waiting) check();
    },
    wait: (learning, timeoutMs, signal) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(check);
          signal.removeEventListener("abort", done);
          resolve(learning());
        };
        const check = (): void => {
          if (learning().length === 0) done();
        };
        const timer = setTimeout(done, timeoutMs);
        waiting.add(check);
        signal.addEventListener("abort", done);
        if (signal.aborted) done();
        else check();
      }),
  };
}
