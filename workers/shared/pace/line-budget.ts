/**
 * How much one server may write into the log: so many lines and characters in each window of time. What is
 * beyond that is counted, not composed, and told in one line when the window is over.
 */
export interface LineBudget {
  /** Composes the line and hands it on, or counts it as dropped. */
  offer(compose: () => string, write: (line: string) => void): void;
  /** Tells at once what was dropped: nobody will wait for the end of the window. */
  close(): void;
}

export interface LineLimits {
  lines: number;
  chars: number;
  windowMs: number;
}

export function createLineBudget(limits: LineLimits, onDropped: (count: number) => void): LineBudget {
  let opensAt = -Infinity;
  let lines = 0;
  let chars = 0;
  let dropped = 0;
  let timer: NodeJS.Timeout | undefined;

  const tell = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (dropped > 0) onDropped(dropped);
    dropped = 0;
  };
  const open = (now: number): void => {
    tell();
    opensAt = now;
    ({ lines, chars } = limits);
  };
  const drop = (now: number): void => {
    // One line too long spends the window: composing the next ones would cost as much as writing them.
    lines = 0;
    dropped++;
    timer ??= setTimeout(tell, opensAt + limits.windowMs - now).unref();
  };

  return {
    offer: (compose, write) => {
      const now = performance.now();
      if (now - opensAt >= limits.windowMs) open(now);
      if (lines === 0) return drop(now);
      const line = compose();
      if (line.length > chars) return drop(now);
      lines--;
      chars -= line.length;
      write(line);
    },
    close: tell,
  };
}
