/**
 * Pauses for as long as some work took, so that a stream of such work takes at most half of the thread's time, and what
 * other servers need is not behind all of it.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** A single piece of work that took long is no stream of work. */
const LONGEST_MS = 25;

/** `startedAt`: of `performance.now()`. What the work has begun, such as handlers of messages, counts as well. */
export async function equalPause(startedAt: number): Promise<void> {
  await nextTurn();
  await sleep(Math.min(performance.now() - startedAt, LONGEST_MS), undefined, { ref: false });
}
