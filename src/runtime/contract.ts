/** The contract of a session and its runtime. Types only. */

import type { CallResult, CallToolParams } from "../shared/protocol/calls.ts";
import type {
  ConnectionMethod,
  ConnectionMethods,
  LogLevel,
  WorkerEvent,
} from "../shared/protocol/contract.ts";
import type { WorkerBoot } from "../shared/protocol/port.ts";
import type { SessionFacts } from "../shared/protocol/session.ts";
import type { OnQuestion } from "./thread.ts";

/** The message of the error `runtime_stopped`, the same wherever a request meets the end of the session. */
export const STOPPED = "The MCP servers of this session are stopped.";

export interface Crash {
  /** Why the worker ended, in words for people. */
  reason: string;
  /** The worker crashed too often, and no other worker is started. */
  givenUp: boolean;
  /** Servers that probably caused the crash. The next worker does not connect them unasked. */
  heldBack?: string[];
}

/** How patient `afterCrash` is. The defaults are `LIMITS.respawnMs` and `LIMITS.respawnsAMinute`. */
export interface CrashPolicy {
  /** Delays before the next worker, in milliseconds; the last one repeats. */
  respawnMs: readonly number[];
  /** Counted crashes within a minute after which a next worker still starts. */
  respawnsAMinute: number;
}

/** Limits that replace those of `LIMITS`, for tests. */
export interface KeepLimits extends Partial<CrashPolicy> {
  /** A worker that does not answer for so many milliseconds hangs. */
  heartbeatMs?: number;
}

export interface Runtime {
  callTool(params: CallToolParams, signal: AbortSignal | undefined): Promise<CallResult>;
  settleTools(
    params: ConnectionMethods["settleTools"]["params"],
    signal: AbortSignal | undefined,
  ): Promise<ConnectionMethods["settleTools"]["value"]>;
  /** Resolves when the request is done. Rejects with a `ThreadsError`; with `cancelled` as soon as the signal fires. */
  ask<M extends ConnectionMethod>(
    method: M,
    params: ConnectionMethods[M]["params"],
    signal?: AbortSignal,
  ): Promise<ConnectionMethods[M]["value"]>;
  /** Sends a request whose answer nobody needs. Does not fail, and does not keep the process alive. */
  post<M extends ConnectionMethod>(method: M, params: ConnectionMethods[M]["params"]): void;
  log(level: LogLevel, message: string): void;
  /** Whether a file of the configuration was edited while the session rested, which no worker has read yet. Never rejects. */
  isBehind(): Promise<boolean>;
  /**
   * Closes all servers and ends the thread, within `LIMITS.shutdownMs` and a moment. Then kills the server processes that
   * are left. Does not reject, and does not wait for a thread that cannot be ended.
   */
  stop(): Promise<void>;
}

/** A session in which no worker is needed yet. */
export interface Resting {
  /** Settles when the session needs a worker. */
  over: Promise<void>;
  /** Whether a file of the configuration is no longer what it was when the session began. */
  isEdited: () => Promise<boolean>;
  /** `SessionFacts.rested`. Absent: main was told nothing, which the worker will tell. */
  traces?: string;
}

export interface RuntimeOptions {
  logFile: string;
  /** Where the person types commands. Absent: in Pi. */
  commands?: WorkerBoot["commands"];
  /** The facts for each worker that starts: the first one, and each one that follows a crash. */
  facts: () => SessionFacts;
  onEvent: (event: WorkerEvent) => void;
  /** Asks the person. Absent: there is none. */
  onQuestion?: OnQuestion;
  onCrash: (crash: Crash) => void;
  /** Begins a rest that is over at the latest when `asked` settles; undefined: the session must not rest, as if absent. */
  rest?: ((asked: Promise<void>) => Promise<Resting | undefined>) | undefined;
  /** The session has rested, and was told then what a start tells. */
  hasRested?: boolean;
  /** The worker could not be started, or runs but could not open the session. */
  onStartFailed: (error: Error) => void;
  /** Another worker than the one beside this file, for tests. */
  workerUrl?: URL;
  /** When a worker counts as hanging, and how soon the next one starts. */
  limits?: KeepLimits;
}
