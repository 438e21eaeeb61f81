/** What a session gets from its runtime, and what the runtime needs of the session. Types only. */
import type { ConnectionMethod, ConnectionMethods, LogLevel } from "../shared/protocol/api.ts";
import type { CallResult, CallToolParams } from "../shared/protocol/calls.ts";
import type { WorkerEvent } from "../shared/protocol/events.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";

export interface Crash {
  /** For people: why the worker ended. */
  reason: string;
  /** No other worker is started: it crashed too often. */
  givenUp: boolean;
  /** Servers that caused it, as far as is known: the next worker does not connect them by itself. */
  heldBack?: string[];
}

/** How patient `afterCrash` is. The defaults are `LIMITS.respawnMs` and `LIMITS.respawnsAMinute`. */
export interface CrashPolicy {
  /** Delays before the next worker, in milliseconds; the last one repeats. */
  respawnMs: readonly number[];
  /** Counted crashes within a minute after which a next worker still starts. */
  respawnsAMinute: number;
}

/** The limits that a keeper may be given in the place of those of `LIMITS`. */
export interface KeepLimits extends Partial<CrashPolicy> {
  /** The worker is asked this often whether it lives, in milliseconds; no answer for as long means that it hangs. */
  heartbeatMs?: number;
}

/** What `/mcp`, dialogs and answers to the model ask for. */
export type UserRequest =
  | "status"
  | "explainMissing"
  | "matchTools"
  | "stats"
  | "reconnect"
  | "answerConsent"
  | "askAgain"
  | "applyHeld"
  | "setEnabled"
  | "readConfig"
  | "writeConfig";

export interface Runtime {
  callTool(params: CallToolParams, signal: AbortSignal | undefined): Promise<CallResult>;
  settleTools(
    params: ConnectionMethods["settleTools"]["params"],
    signal: AbortSignal | undefined,
  ): Promise<ConnectionMethods["settleTools"]["value"]>;
  /** A request of the user's: answered when it is done, or failed. */
  ask<M extends UserRequest>(
    method: M,
    params: ConnectionMethods[M]["params"],
  ): Promise<ConnectionMethods[M]["value"]>;
  /** Never fails and keeps nothing alive: for what nobody waits for. */
  tell<M extends ConnectionMethod>(method: M, params: ConnectionMethods[M]["params"]): void;
  log(level: LogLevel, message: string): void;
  /**
   * Closes all servers and ends the thread, within `LIMITS.shutdownMs` and a moment; kills what is left. Never rejects,
   * and does not wait for a thread that cannot be ended.
   */
  stop(): Promise<void>;
}

export interface RuntimeOptions {
  logFile: string;
  /** Told to each worker that starts, the first and every one after a crash. */
  facts: () => SessionFacts;
  onEvent: (event: WorkerEvent) => void;
  onCrash: (crash: Crash) => void;
  /** The worker runs but could not open the session. */
  onStartFailed: (error: Error) => void;
  /** The packed or raw worker of this checkout, unless a test brings its own. */
  workerUrl?: URL;
  /** When a worker hangs, and how soon the next one starts. */
  limits?: KeepLimits;
}
