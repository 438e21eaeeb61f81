/** Small helpers that connect abort signals and promises. */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";

/**
 * Runs `task` with a signal that follows `parent` only until the task has settled. The SDK keeps listening to a signal
 * after its request has ended: it would tell a closed server to cancel that request, and the signal would keep the result.
 */
export async function during<T>(parent: AbortSignal, task: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const follow = (): void => controller.abort(parent.reason);
  if (parent.aborted) follow();
  parent.addEventListener("abort", follow, { once: true });
  try {
    return await task(controller.signal);
  } finally {
    parent.removeEventListener("abort", follow);
  }
}

/** The promise, or the error `cancelled` as soon as the signal fires, so that the user waits no longer. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = (): void => reject(new ThreadsError("cancelled", `${what} was cancelled.`));
    // The promise may reject when nobody waits any more: a rejection without a handler ends the worker.
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", cancel));
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  });
}

/** Whether the promise resolves or rejects within `ms` milliseconds. Never rejects. */
export async function settledWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(resolve, ms, false);
  const settled = promise.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}
