/**
 * The requests that main makes of the connection worker, over comlink. Each takes one object and
 * answers a `Reply`; `requestId` lets main abort it.
 */
import type { Reply, WireError } from "./errors.ts";
import type { CallToolParams, RegisteredServer, SessionFacts, StatsReport, StatusReport } from "./types.ts";

/** Method -> what it takes and what it answers. */
export interface ConnectionMethods {
  /** Loads the configuration and starts what it names. Answers when the plan is made, not when servers are up. */
  startSession: { params: SessionFacts; value: undefined };
  /**
   * Answers when the tools of every server, or of the named ones, are known or its connect has failed, or
   * after `timeoutMs`.
   * `checksum`: of the snapshot that then holds; its event may still be under way on the other port.
   */
  settleTools: {
    params: { timeoutMs: number; servers?: string[] };
    value: { pending: string[]; checksum: number | undefined };
  };
  /** `value`: a msgpackr-encoded `CallResult`. */
  callTool: { params: CallToolParams; value: Uint8Array<ArrayBuffer> };
  /** Connects one server, or all that should be: for the user. Answers when each has connected or failed. */
  reconnect: { params: { server: string | undefined }; value: undefined };
  /** The user's answer to a `ConsentQuestion`; remembered. */
  answerConsent: { params: { hash: string; allow: boolean }; value: undefined };
  /** Asks again for servers of the project that were refused. */
  askAgain: { params: Record<string, never>; value: undefined };
  /** Applies the edit that a `held` event told of, or leaves it until the next one. */
  applyHeld: { params: { id: string; apply: boolean }; value: undefined };
  /** Other extensions registered or withdrew servers. */
  setRegistered: { params: { servers: RegisteredServer[] }; value: undefined };
  /**
   * Switches a server on or off in the file that says so, keeping its comments. Answers the file, and why a server
   * that is on by that still does not run.
   */
  setEnabled: {
    params: { server: string; enabled: boolean; project: boolean };
    value: { file: string; but?: string };
  };
  /** The configuration file that `/mcp edit` is about, with its text; empty where there is none yet. */
  readConfig: { params: { project: boolean }; value: { file: string; text: string } };
  /** Writes it, if it still is as it was read; it is then applied like any edit. */
  writeConfig: { params: { project: boolean; before: string; text: string }; value: { file: string } };
  /** Why a tool of that name is not to be had, where the configuration is the reason. */
  explainMissing: { params: { name: string }; value: WireError | undefined };
  /**
   * Positions of the tools of which a text matches a regular expression, in either case; or what is wrong with the
   * pattern. `columns`: texts of the tools, each column with one text a tool, separated by U+0000.
   */
  matchTools: {
    params: { pattern: string; columns: string[] };
    value: { rows: number[] } | { problem: string };
  };
  /** The captured statistics of calls. */
  stats: { params: Record<string, never>; value: StatsReport };
  /** A turn of the model ended: a moment to bring dropped eager servers back. */
  turnEnded: { params: Record<string, never>; value: undefined };
  /** Whether the worker's loop turns. */
  ping: { params: Record<string, never>; value: undefined };
  status: { params: Record<string, never>; value: StatusReport };
  /** One line for the log file, from main. */
  log: { params: { level: LogLevel; message: string }; value: undefined };
  /** Closes every server and flushes the log. */
  shutdown: { params: Record<string, never>; value: undefined };
}

export type LogLevel = "debug" | "info" | "warn" | "error";

export type ConnectionMethod = keyof ConnectionMethods;

export const CONNECTION_METHODS = [
  "startSession",
  "settleTools",
  "callTool",
  "reconnect",
  "answerConsent",
  "askAgain",
  "applyHeld",
  "setRegistered",
  "setEnabled",
  "readConfig",
  "writeConfig",
  "explainMissing",
  "matchTools",
  "stats",
  "turnEnded",
  "ping",
  "status",
  "log",
  "shutdown",
] as const satisfies readonly ConnectionMethod[];

/** What the worker exposes. `cancel` is one-way in meaning: it never fails and answers nothing of interest. */
export type ConnectionApi = {
  [M in ConnectionMethod]: (
    requestId: number,
    params: ConnectionMethods[M]["params"],
  ) => Promise<Reply<ConnectionMethods[M]["value"]>>;
} & { cancel(requestId: number): void };
