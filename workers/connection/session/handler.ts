/** The answer to a request of main, as `(params, signal)` like the contract of main and worker. Types only. */
import type { ConnectionMethod, ConnectionMethods } from "../../../src/shared/protocol/api.ts";

export type Handler<M extends ConnectionMethod> = (
  params: ConnectionMethods[M]["params"],
  signal: AbortSignal,
) => Promise<ConnectionMethods[M]["value"]>;

/** Requests that the worker answers without a session. */
export type WorkerRequest = "startSession" | "matchTools" | "ping" | "log" | "shutdown";

export type SessionRequests = { [M in Exclude<ConnectionMethod, WorkerRequest>]: Handler<M> };
