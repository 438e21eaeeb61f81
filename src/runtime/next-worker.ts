/** The wait for a worker, for requests that come while none runs. */
import { ThreadsError } from "../shared/protocol/errors.ts";
import type { Rpc } from "./rpc.ts";

function createNext(): PromiseWithResolvers<Rpc> {
  const next = Promise.withResolvers<Rpc>();
  // Nobody may be waiting when the promise rejects.
  next.promise.catch(() => undefined);
  return next;
}

export class NextWorker {
  #next = createNext();
  #isResolved = false;

  /** A worker runs. */
  resolve(rpc: Rpc): void {
    this.#isResolved = true;
    this.#next.resolve(rpc);
  }

  /** No worker will run any more. */
  reject(error: ThreadsError): void {
    this.#next.reject(error);
  }

  /** The worker has ended. Callers that wait already keep waiting for the worker that follows. */
  renew(): void {
    if (this.#isResolved) this.#next = createNext();
    this.#isResolved = false;
  }

  /** Rejects with `cancelled` when the signal aborts. */
  wait(signal: AbortSignal | undefined): Promise<Rpc> {
    return new Promise((resolve, reject) => {
      const cancel = (): void => reject(new ThreadsError("cancelled", "The call was cancelled."));
      if (signal?.aborted) {
        cancel();
        return;
      }
      signal?.addEventListener("abort", cancel, { once: true });
      this.#next.promise.then(resolve, reject).finally(() => signal?.removeEventListener("abort", cancel));
    });
  }
}
