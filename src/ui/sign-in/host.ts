/** The part of the session that a sign-in needs, and what the session gets of the sign-ins. Types only. */
import type { Runtime } from "../../runtime/contract.ts";
import type { WorkerEvent } from "../../shared/protocol/contract.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";

export interface SignInHost {
  ask: Runtime["ask"];
  inTurn: Dialogs["inTurn"];
  log(message: string): void;
  /** Whether the session has ended. Pi must not be touched then. */
  over(): boolean;
  /** Shows an error, unless the session has ended. Does not throw. */
  failed(text: string): void;
  /** Milliseconds that the worker has to tell the end of a sign-in whose time is over. Absent: `LIMITS` decide. */
  graceMs?: number;
}

/**
 * A server that has nothing to sign in to, but may take a key. `why`: its own words, for the person. `works`: it is connected as
 * it is.
 */
export interface KeyWish {
  server: string;
  why: string;
  works: boolean;
}

export interface SignIns {
  /**
   * Signs in to the server that the user named; without a name to the one that needs it, or to the user's choice of
   * several. Resolves when the sign-in has ended and the user has read how, or with a wish that the caller asks about.
   */
  byUser(server: string | undefined): Promise<KeyWish | undefined>;
  /**
   * Signs in if a call to the server has failed for want of it. Answers whether the call may be repeated, and false as
   * soon as `signal` aborts; the sign-in then goes on. Does not reject.
   */
  forCall(server: string, failure: unknown, signal: AbortSignal | undefined): Promise<boolean>;
  /** Whether a sign-in to the server is under way, so that its end is told to the user. */
  isRunning(server: string): boolean;
  ended(event: Extract<WorkerEvent, { type: "sign-in" }>): void;
  /** The worker or the session has ended: every dialog closes. */
  interrupt(): void;
}
