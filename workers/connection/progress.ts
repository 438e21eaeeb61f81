/** Passes progress on at most every `intervalMs`: the first at once, then the newest of each interval. */
export interface ProgressPacer {
  tell(message: string): void;
  /** Nothing more is passed on: the call is over. */
  stop(): void;
}

export function createProgressPacer(intervalMs: number, pass: (message: string) => void): ProgressPacer {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let newest: string | undefined;
  const onInterval = (): void => {
    timer = undefined;
    if (newest === undefined) return;
    const message = newest;
    newest = undefined;
    passNow(message);
  };
  const passNow = (message: string): void => {
    pass(message);
    timer = setTimeout(onInterval, intervalMs);
  };
  return {
    tell: (message) => {
      if (stopped) return;
      if (timer) newest = message;
      else passNow(message);
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      newest = undefined;
    },
  };
}
