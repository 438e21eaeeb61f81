/** The wait for a worker, for requests that come while none runs. */
import { ThreadsError } from "../shared/protocol/errors.ts";
import type { Rpc } from "./rpc.ts";

export interface NextWorker {
  /** A worker runs. */
  resolve(rpc: Rpc): void;
  /** No worker will run any more. */
  reject(error: ThreadsError): void;
  /** The worker has ended. Callers that wait already keep waiting for the worker that follows. */
  renew(): void;
  /** Rejects with `cancelled` when the signal aborts. */
  wait(signal: AbortSignal | undefined): Promise<Rpc>;
}

function createNext(): PromiseWithResolvers<Rpc> {
  const next = Promise.withResolvers<Rpc>();
  // Nobody may be waiting when the promise rejects.
  next.promise.catch(() => undefined);
  return next;
}

export function createNextWorker(): NextWorker {
  let next = createNext();
  let isResolved = false;
  return {
    resolve: (rpc) => {
      isResolved = true;
      next.resolve(rpc);
    },
    reject: (error) => next.reject(error),
    renew: () => {
      if (isResolved) next = createNext();
      isResolved = false;
    },
    wait: (signal) =>
      new Promise((resolve, reject) => {
        const cancel = (): void => reject(new ThreadsError("cancelled", "The call was cancelled."));
        if (signal?.aborted) {
          cancel();
          return;
        }
        signal?.addEventListener("abort", cancel, { once: true });
        next.promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", cancel));
      }),
  };
}
