/** Owns: which failed connects are tried again, and when. */
import { setTimeout as sleep } from "node:timers/promises";
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";
import type { HttpFailure } from "./failure.ts";

/** Before the second and the third attempt. */
export const RETRY_MS: readonly number[] = [300, 1_000];

/**
 * Wait in ms before the next attempt; undefined: there is no other attempt. `retry` counts from 0. `delaysMs`: the wait
 * before each further attempt. A server that asks for a longer wait than `LIMITS.retryAfterMs` is not asked again: it
 * would only refuse.
 */
export function retryDelay(
  failure: HttpFailure,
  retry: number,
  delaysMs: readonly number[] = RETRY_MS,
): number | undefined {
  const delayMs = delaysMs[retry];
  if (delayMs === undefined) return undefined;
  if (failure.kind === "network") return delayMs;
  if (failure.kind !== "busy") return undefined;
  const askedMs = failure.retryAfterMs ?? 0;
  return askedMs > LIMITS.retryAfterMs ? undefined : Math.max(delayMs, askedMs);
}

/** Rejects with the last attempt's error, or at once if the signal is aborted. */
export async function retryWhileTransient<T>(
  attempt: () => Promise<T>,
  options: {
    failureOf: (error: unknown) => HttpFailure;
    onNote: (note: string) => void;
    signal: AbortSignal;
    delaysMs?: readonly number[] | undefined;
  },
): Promise<T> {
  for (let retry = 0; ; retry++) {
    try {
      return await attempt();
    } catch (error) {
      const failure = options.failureOf(error);
      const delayMs = retryDelay(failure, retry, options.delaysMs);
      if (delayMs === undefined || options.signal.aborted) throw error;
      const reason =
        failure.kind === "busy" ? `status ${failure.status}` : "code" in failure ? failure.code : "";
      options.onNote(`could not be connected (${reason}), trying again in ${delayMs} ms`);
      await sleep(delayMs, undefined, { signal: options.signal });
    }
  }
}
