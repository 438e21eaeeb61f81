/**
 * Bounds what one server may write into the log: a number of lines and characters in each window of time. Further lines
 * are not composed but counted, and reported in one line when the window is over.
 */
export interface LineBudget {
  /** Composes the line and hands it on, or counts it as dropped. */
  write(compose: () => string, sink: (line: string) => void): void;
  /** Reports dropped lines at once, without waiting for the end of the window. */
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
    write: (compose, sink) => {
      const now = performance.now();
      if (now - opensAt >= limits.windowMs) open(now);
      if (lines === 0) return drop(now);
      const line = compose();
      if (line.length > chars) return drop(now);
      lines--;
      chars -= line.length;
      sink(line);
    },
    close: reportDropped,
  };
}
