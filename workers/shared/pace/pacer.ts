/** Passes progress on at most once every `intervalMs`: the first at once, then the newest of each interval. */
export interface ProgressPacer<T> {
  push(progress: T): void;
  /** Ends the passing on, because the call has ended. */
  stop(): void;
}

export function createProgressPacer<T>(intervalMs: number, pass: (progress: T) => void): ProgressPacer<T> {
  let timer: NodeJS.Timeout | undefined;
  let newest: { progress: T } | undefined;
  let stopped = false;
  const onInterval = (): void => {
    timer = undefined;
    if (newest === undefined) return;
    const { progress } = newest;
    newest = undefined;
    passNow(progress);
  };
  const passNow = (progress: T): void => {
    pass(progress);
    timer = setTimeout(onInterval, intervalMs);
  };
  return {
    push: (progress) => {
      if (stopped) return;
      if (timer) newest = { progress };
      else passNow(progress);
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      newest = undefined;
    },
  };
}
