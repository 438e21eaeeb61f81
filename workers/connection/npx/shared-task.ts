/** Lets several callers wait for one run of a task. The task is aborted when the last caller has left. */

export type ShareTask<T> = (
  key: string,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

interface OpenTask<T> {
  outcome: Promise<T>;
  controller: AbortController;
  users: number;
}

/** A caller whose signal is aborted rejects with the signal's reason; the last caller only when the task is over. */
export function createTaskSharing<T>(): ShareTask<T> {
  const open = new Map<string, OpenTask<T>>();

  const start = (key: string, task: (signal: AbortSignal) => Promise<T>): OpenTask<T> => {
    const controller = new AbortController();
    const started: OpenTask<T> = { outcome: task(controller.signal), controller, users: 0 };
    const close = (): void => {
      if (open.get(key) === started) open.delete(key);
    };
    started.outcome.then(close, close);
    open.set(key, started);
    return started;
  };

  return async (key, signal, task) => {
    signal.throwIfAborted();
    const shared = open.get(key) ?? start(key, task);
    shared.users++;
    const left = Promise.withResolvers<never>();
    const leave = (): void => left.reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([shared.outcome, left.promise]);
    } finally {
      signal.removeEventListener("abort", leave);
      shared.users--;
      if (shared.users === 0 && signal.aborted) {
        // A caller that comes now starts a new run.
        if (open.get(key) === shared) open.delete(key);
        shared.controller.abort(signal.reason);
        await shared.outcome.catch(() => undefined);
      }
    }
  };
}
