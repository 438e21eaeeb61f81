/**
 * Lets Pi's first request to the model go first: while main prepares it, the servers of the first plan would take the
 * processor from main. Owns how long the plan waits. Must not: hold up anything that main asks for.
 */
import type { ConnectionMethod, ConnectionMethods } from "../../../src/shared/protocol/contract.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

export type Handler<M extends ConnectionMethod> = (
  params: ConnectionMethods[M]["params"],
  signal: AbortSignal,
) => Promise<ConnectionMethods[M]["value"]>;

/** Requests that the worker answers without a session. */
export type WorkerRequest = "startSession" | "matchTools" | "ping" | "log" | "shutdown";

export type SessionRequests = { [M in Exclude<ConnectionMethod, WorkerRequest>]: Handler<M> };

/** Pi tells of the request before it opens the connection and writes. */
const STILL_LEAVING_MS = 30;

export interface FirstRequest {
  /** Main prepares the request, or the request leaves. */
  note(state: "prepared" | "sent"): void;
  /** Ends the wait. */
  end(): void;
  /** Resolves when no request is being prepared, at the end of the wait, or after `LIMITS.firstRequestMs`. */
  gone(): Promise<void>;
}

export function createFirstRequest(signal: AbortSignal): FirstRequest {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isPrepared = false;
  let timer: NodeJS.Timeout | undefined;
  const endAfter = (ms: number): void => {
    clearTimeout(timer);
    timer = setTimeout(resolve, ms);
  };
  const end = (): void => {
    clearTimeout(timer);
    resolve();
  };
  signal.addEventListener("abort", end, { once: true });
  return {
    note: (state) => {
      isPrepared ||= state === "prepared";
      endAfter(state === "prepared" ? LIMITS.firstRequestMs : STILL_LEAVING_MS);
    },
    end,
    gone: async () => {
      if (isPrepared && !signal.aborted) await promise;
    },
  };
}

/** The requests of main, each of which ends the wait, because it may concern a server. */
export function endingTheWait(
  requests: Omit<SessionRequests, "firstRequest">,
  first: Pick<FirstRequest, "note" | "end">,
): SessionRequests {
  const ending = Object.entries(requests).map(([method, answer]) => [
    method,
    (params: never, signal: AbortSignal) => {
      first.end();
      return (answer as Handler<keyof SessionRequests>)(params, signal);
    },
  ]);
  return {
    ...(Object.fromEntries(ending) as SessionRequests),
    firstRequest: async ({ state }) => {
      first.note(state);
      return undefined;
    },
  };
}
