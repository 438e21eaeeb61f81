/**
 * The life of one server as a pure function: `(state, event) -> {state, effects}`. server.ts carries the effects out.
 * Times are milliseconds of one clock, which the caller reads.
 */
import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Leave } from "../../shared/pace/pace.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";

export type Lifecycle = "lazy" | "eager" | "keep-alive";

/** The part of definition and settings that decides about a server's life. */
export interface LifecyclePolicy {
  lifecycle: Lifecycle;
  /** 0: the connection is never closed for being idle. Calls in flight count as use. */
  idleTimeoutMs: number;
  /** Pause before a keep-alive server is connected again; it doubles with each failure. */
  reconnectMs?: number;
}

/** Whether the server is to be connected, and may run already, for another session. */
export const connectsShared = ({
  definition: { enabled, lifecycle, shared },
}: {
  definition: ServerDefinition;
}): boolean => enabled && lifecycle !== "lazy" && shared === true;

/**
 * `failures`: attempts in a row that gave no connection for as long as `LIMITS.steadyMs`, because the attempt failed or
 * the connection was soon dropped. An idle server without an error has no failures.
 */
export type ServerPhase =
  | { name: "idle" }
  | { name: "idle"; error: ThreadsError; failures: number }
  | { name: "connecting"; failures: number }
  | { name: "connected"; failures: number; sinceMs: number }
  | { name: "needs-auth"; error: ThreadsError }
  /** `retryAtMs`: for calls. `unaskedAtMs`: for the background. `heldBack`: only a call or the user connects the server. */
  | {
      name: "failed";
      error: ThreadsError;
      retryAtMs: number;
      unaskedAtMs: number;
      failures: number;
      heldBack?: true;
    }
  | { name: "closing" }
  | { name: "disabled" };

/**
 * A `call` and a `background` start respect the pause after a failure, and the `user` ends it. The `timer` of a
 * keep-alive server has waited already: its delay grows with the failures.
 */
export type WantedBy = "call" | "background" | "user" | "timer";

export type ServerEvent =
  /** A connection is needed. */
  | { type: "wanted"; nowMs: number; by: WantedBy }
  | { type: "opened"; nowMs: number }
  | { type: "open-failed"; error: ThreadsError; nowMs: number; tookMs: number }
  /** The connection ended although it was not closed here, or its health check failed. */
  | { type: "dropped"; error: ThreadsError; nowMs: number }
  /** The server no longer accepts the credentials of the open connection. */
  | { type: "auth-lost"; error: ThreadsError }
  /** The server was at work when an earlier worker died: it must not be connected by itself. */
  | { type: "held-back"; error: ThreadsError }
  /** Nothing used the connection for the idle time. */
  | { type: "idle-expired" }
  /** The connection relied on what was remembered of the server, which does not hold: the next one asks the server first. */
  | { type: "outdated" }
  /** The user wants a new connection in place of this one. */
  | { type: "renewed"; leave: Leave }
  /** The session ends, or the server was replaced or removed. */
  | { type: "closed"; leave: Leave };

export type ServerEffect =
  | { type: "open" }
  /** Ends the connection, or the attempt to open one. */
  | { type: "close" }
  /** Uses the connection no more, and ends it when its open calls are done, whose own limits bound that. */
  | { type: "close-when-idle" }
  /** The wish for a connection is answered with this reason. */
  | { type: "refuse"; reason: "waiting-to-retry" | "disabled" | "closing" }
  | { type: "reconnect-later"; delayMs: number };

interface Transition {
  state: ServerPhase;
  effects: ServerEffect[];
}

/** Delay of a keep-alive server's next attempt. */
export const backoffMs = (failures: number, reconnectMs: number = LIMITS.reconnectMs): number =>
  Math.min(reconnectMs * 2 ** Math.max(failures - 1, 0), LIMITS.reconnectLongestMs);

const stay = (state: ServerPhase, ...effects: ServerEffect[]): Transition => ({ state, effects });

function onWanted(state: ServerPhase, event: { nowMs: number; by: WantedBy }): Transition {
  switch (state.name) {
    case "disabled":
      return stay(state, { type: "refuse", reason: "disabled" });
    case "closing":
      return stay(state, { type: "refuse", reason: "closing" });
    case "connecting":
    case "connected":
      return stay(state);
    case "failed":
      if (state.heldBack && event.by !== "call" && event.by !== "user") {
        return stay(state, { type: "refuse", reason: "waiting-to-retry" });
      }
      if (
        (event.by === "call" && event.nowMs < state.retryAtMs) ||
        (event.by === "background" && event.nowMs < state.unaskedAtMs)
      ) {
        return stay(state, { type: "refuse", reason: "waiting-to-retry" });
      }
      return {
        state: { name: "connecting", failures: event.by === "user" ? 0 : state.failures },
        effects: [{ type: "open" }],
      };
    case "idle": {
      const failures = "failures" in state && event.by !== "user" ? state.failures : 0;
      return { state: { name: "connecting", failures }, effects: [{ type: "open" }] };
    }
    case "needs-auth":
      return { state: { name: "connecting", failures: 0 }, effects: [{ type: "open" }] };
  }
}

const reconnectLater = ({ lifecycle, reconnectMs }: LifecyclePolicy, failures: number): ServerEffect[] =>
  lifecycle === "keep-alive" ? [{ type: "reconnect-later", delayMs: backoffMs(failures, reconnectMs) }] : [];

/**
 * For how long calls do not try again. What comes back, such as a gateway that restarts, serves the next call: calls spend
 * a tenth of the time on attempts, however many there have been. Where the server names the time, that counts alone: the
 * attempt took as long as it did because the server has let it wait.
 */
const pauseMs = ({ data }: ThreadsError, tookMs: number): number =>
  Math.min(
    Math.max(LIMITS.retrySoonestMs, Number(data?.retryAfterMs) || LIMITS.retryTimes * tookMs),
    LIMITS.retryAfterFailureMs,
  );

function onOpenFailed(
  state: Extract<ServerPhase, { name: "connecting" }>,
  { error, nowMs, tookMs }: { error: ThreadsError; nowMs: number; tookMs: number },
  policy: LifecyclePolicy,
): Transition {
  if (error.code === "needs_auth") return { state: { name: "needs-auth", error }, effects: [] };
  const failures = state.failures + 1;
  const pause = pauseMs(error, tookMs);
  // Nobody waits for it: what stays broken costs less and less.
  const unasked = Math.min(pause * 2 ** state.failures, LIMITS.retryUnaskedLongestMs);
  return {
    state: { name: "failed", error, retryAtMs: nowMs + pause, unaskedAtMs: nowMs + unasked, failures },
    effects: reconnectLater(policy, failures),
  };
}

/** A server that is dropped soon after each connect counts as one that does not connect. */
function onDropped(
  state: Extract<ServerPhase, { name: "connected" }>,
  { error, nowMs }: { error: ThreadsError; nowMs: number },
  policy: LifecyclePolicy,
): Transition {
  const wasSteady = nowMs - state.sinceMs >= LIMITS.steadyMs;
  const failures = wasSteady ? 1 : state.failures + 1;
  return {
    state: { name: "idle", error, failures },
    effects: [{ type: "close" }, ...reconnectLater(policy, failures)],
  };
}

/** The only function that changes a server's state. An event without meaning in a state changes nothing. */
export function transition(state: ServerPhase, event: ServerEvent, policy: LifecyclePolicy): Transition {
  switch (event.type) {
    case "wanted":
      return onWanted(state, event);
    case "opened":
      return state.name === "connecting"
        ? stay({ name: "connected", failures: state.failures, sinceMs: event.nowMs })
        : stay(state);
    case "open-failed":
      return state.name === "connecting" ? onOpenFailed(state, event, policy) : stay(state);
    case "dropped":
      return state.name === "connected" ? onDropped(state, event, policy) : stay(state);
    case "auth-lost":
      return state.name === "connected"
        ? { state: { name: "needs-auth", error: event.error }, effects: [{ type: "close-when-idle" }] }
        : stay(state);
    case "held-back": {
      if (state.name !== "idle") return stay(state);
      const { error } = event;
      return stay({ name: "failed", error, retryAtMs: 0, unaskedAtMs: 0, failures: 0, heldBack: true });
    }
    case "idle-expired":
      if (state.name !== "connected" || policy.lifecycle === "keep-alive") return stay(state);
      return { state: { name: "idle" }, effects: [{ type: "close" }] };
    case "outdated":
      if (state.name !== "connected") return stay(state);
      // A keep-alive server waits for no call: the attempt that opened this connection has ended its timer.
      return {
        state: { name: "idle" },
        effects: [{ type: "close-when-idle" }, ...reconnectLater(policy, 1)],
      };
    case "renewed":
      return state.name === "connected"
        ? { state: { name: "idle" }, effects: [{ type: "close" }] }
        : stay(state);
    case "closed":
      if (state.name === "disabled" || state.name === "closing") return stay(state);
      return { state: { name: "closing" }, effects: [{ type: "close" }] };
  }
}
