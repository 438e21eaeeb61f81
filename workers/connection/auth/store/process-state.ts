/**
 * What all stores of this process know about one path: what was told about it, a sign-in that the disk did not take, and
 * who waits for it. A reconnected server opens a new store, and must not tell again or lose what was kept.
 */

import { abortable, settledWithin } from "../../../shared/pace/abort.ts";
import { SignInProblem, type SignInRecord } from "../model/model.ts";

export type Topic = "reading" | "writing";

interface PathState {
  /** `record`: undefined if the user signed out. `stamp`: of the file then; after any change of it the file counts. */
  kept?: { record: SignInRecord | undefined; stamp: string };
  /** The last problem that was told of each topic. */
  told: Map<Topic, string>;
  /** Settles when the last one in the queue has left. */
  queue?: Promise<void>;
}

/** A path stays here until the process ends. There are no more paths than sign-ins. */
const states = new Map<string, PathState>();

export function stateOf(path: string): PathState {
  const known = states.get(path);
  if (known) return known;
  const state: PathState = { told: new Map() };
  states.set(path, state);
  return state;
}

/** Tells a problem unless it was the last one told of the topic. Undefined: the problem is over. */
export function tellOnce(
  path: string,
  topic: Topic,
  { text, tell }: { text: string | undefined; tell: (text: string) => void },
): void {
  const { told } = stateOf(path);
  if (text === undefined) {
    told.delete(topic);
    return;
  }
  if (told.get(topic) === text) return;
  told.set(topic, text);
  tell(text);
}

/** Runs `work` when all earlier callers for the path in this process have finished, or throws "lock-busy" or "cancelled". */
export async function inTurn<T>(
  path: string,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
  work: () => Promise<T>,
): Promise<T> {
  const state = stateOf(path);
  const before = state.queue ?? Promise.resolve();
  const { promise: left, resolve: leave } = Promise.withResolvers<void>();
  state.queue = before.then(() => left);
  try {
    const isFree = await abortable(settledWithin(before, waitMs), signal, "waiting").catch(() => {
      throw new SignInProblem("cancelled");
    });
    if (!isFree) throw new SignInProblem("lock-busy", { path });
    return await work();
  } finally {
    leave();
  }
}
