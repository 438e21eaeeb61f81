/** What lives from `session_start` to `session_shutdown`. Types, and the wait for the plan. */

import type { Runtime } from "../runtime/contract.ts";
import type { ErrorCode } from "../shared/protocol/errors.ts";
import type { AcceptedBefore, CatalogSettings, ServerStatus } from "../shared/protocol/session.ts";
import type { Dialogs } from "../ui/dialogs/dialogs.ts";
import type { SignIns } from "../ui/sign-in/sign-in.ts";

/** The value of the promise, or undefined after `ms` milliseconds. The timer does not keep the process alive. */
export const within = <T>(promise: Promise<T> | undefined, ms: number): Promise<T | undefined> =>
  Promise.race([
    promise,
    new Promise<undefined>((resolve) => {
      setTimeout(() => resolve(undefined), ms).unref();
    }),
  ]);

export interface SessionState {
  /** By server name. Empty until the first plan. */
  statuses: Map<string, ServerStatus>;
  /** Resolves with the first plan, or when the worker cannot open the session. */
  planned: PromiseWithResolvers<void>;
  /** From the newest plan; undefined until the first one. */
  settings: CatalogSettings | undefined;
  /** What the newest plan lets run. The worker that follows a crash receives it. */
  accepted: AcceptedBefore | undefined;
}

export interface Running extends SessionState {
  runtime: Runtime;
  dialogs: Dialogs;
  signIns: SignIns;
  /** Servers that were called in this session. */
  called: Set<string>;
  /**
   * What the user knows of a server without a notice: that he has signed out of it, or the code of the failure that a test has
   * just shown. Until it connects.
   */
  known: Map<string, "signed-out" | ErrorCode>;
  /** Servers whose direct tools a prompt has waited for in vain: none waits for them again. */
  awaited: Set<string>;
  /** How many workers of this session died, and why the last one did. */
  crashes: { count: number; last: string };
  warn: (text: string) => void;
}

/** How long a session waits for the worker, in milliseconds. The defaults are the `LIMITS` of these names. */
export interface SessionWaits {
  searchWaitMs: number;
  directWaitMs: number;
  firstPlanWaitMs: number;
}

/** Answers the running session. After the session's end the answer is undefined, and Pi must not be touched. */
export type WhileRunning<State = Running> = () => State | undefined;

/** Settles with the first plan, after `ms` milliseconds, or at once if no session runs. */
export async function planWithin(
  running: WhileRunning<Pick<SessionState, "planned">>,
  ms: number,
): Promise<void> {
  const session = running();
  if (session) await within(session.planned.promise, ms);
}

/** Waits as `planWithin` does. A worker that would start behind the first request starts at once. */
export function askedPlanWithin(
  running: WhileRunning<Pick<Running, "planned" | "settings" | "runtime">>,
  ms: number,
): Promise<void> {
  const session = running();
  if (session?.settings === undefined) session?.runtime.post("ping", {});
  return planWithin(running, ms);
}

export const serversOf = (session: Pick<SessionState, "statuses"> | undefined): ServerStatus[] => [
  ...(session?.statuses.values() ?? []),
];
