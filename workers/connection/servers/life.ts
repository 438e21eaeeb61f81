/**
 * The life of one server: carries out what `transition` (state.ts) decides. Owns the server's phase, its connection, the
 * attempt to open one, which concurrent users share, and what runs beside an open connection (watch.ts). A failure stays
 * with this server. Called by: server.ts.
 */
import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { type CloseTimes, SHUTDOWN_TIMES } from "../../shared/programs/close-times.ts";
import type { Connection } from "../mcp/connection.ts";
import { type Attempt, type AttemptContext, startAttempt } from "./attempt.ts";
import { droppedError, type Refusal, refusal, statusError } from "./errors.ts";
import { createLeaving, type Leaving } from "./leaving.ts";
import type { ServerParts } from "./parts.ts";
import { closeTimes, lifecyclePolicy, type ServerLimits } from "./policy.ts";
import {
  type LifecyclePolicy,
  type ServerEvent,
  type ServerPhase,
  transition,
  type WantedBy,
} from "./state.ts";
import { ConnectionWatch } from "./watch.ts";

/** The server as its life sees it. */
export interface LivingServer {
  readonly parts: ServerParts;
  readonly limits: ServerLimits;
  /** The phase, or what a status shows of it, is another one. */
  onStatus(): void;
  /** The server listed its tools. */
  onTools(): void;
}

export class ServerLife {
  readonly watch: ConnectionWatch;
  readonly #server: LivingServer;
  readonly #context: AttemptContext;
  readonly #leaving: Leaving;
  #phase: ServerPhase;
  #attempt: Attempt | undefined;
  /** Who asked for a connection last. */
  #wantedBy: WantedBy = "background";
  #connection: Connection | undefined;
  #waits: string | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor(server: LivingServer, context: AttemptContext) {
    const { parts, limits } = server;
    this.#server = server;
    this.#context = context;
    this.#phase = parts.definition().enabled ? { name: "idle" } : { name: "disabled" };
    this.watch = new ConnectionWatch(
      {
        ...parts,
        log: context.log,
        policy: () => this.#policy,
        connected: () => this.connected,
        onIdle: () => this.dispatch({ type: "idle-expired" }),
        onSick: (message) => this.#onDropped(message),
        onListed: () => {
          server.onStatus();
          server.onTools();
        },
      },
      limits,
    );
    this.#leaving = createLeaving(parts.name, context.log, parts.lifetime);
  }

  get phase(): ServerPhase {
    return this.#phase;
  }

  /** What the start waits for, in words. */
  get waits(): string | undefined {
    return this.#waits;
  }

  /** The connection that is held, also while its lists are being asked for. */
  get connection(): Connection | undefined {
    return this.#connection;
  }

  /** The connection, if the server is connected: while its lists are being asked for, it is not. */
  get connected(): Connection | undefined {
    return this.#phase.name === "connected" ? this.#connection : undefined;
  }

  get #policy(): LifecyclePolicy {
    const { parts, limits } = this.#server;
    return lifecyclePolicy(parts.definition(), this.#context.settings(), limits);
  }

  /** Answers the open connection, or waits for the attempt that all callers share. Rejects with `ThreadsError`. */
  connect(by: WantedBy): Promise<Connection> {
    const nowMs = performance.now();
    this.#wantedBy = by;
    const refused = this.dispatch({ type: "wanted", by, nowMs });
    const refuse = (reason: Refusal): Promise<never> =>
      Promise.reject(refusal(this.#server.parts.definition(), this.#phase, reason, nowMs));
    if (refused) return refuse(refused);
    const connection = this.connected;
    if (connection) return Promise.resolve(connection);
    const attempt = this.#attempt;
    if (!attempt) return refuse("closing");
    if (by === "call" || by === "user") attempt.hurry();
    return attempt.promise;
  }

  /** Settles when no connection and no attempt of this server is left. `parts.lifetime` must have been aborted. */
  async ended(): Promise<void> {
    await this.#attempt?.promise.catch(() => undefined);
    await this.#leaving.settled();
  }

  /** Changes the phase by the one function and carries out the effects. Answers why a wish was refused, if it was. */
  dispatch(event: ServerEvent): Refusal | undefined {
    const { limits } = this.#server;
    const before = this.#phase;
    const { state, effects } = transition(before, event, this.#policy);
    this.#phase = state;
    let refused: Refusal | undefined;
    for (const effect of effects) {
      if (effect.type === "refuse") refused = effect.reason;
      if (effect.type === "open") this.#startAttempt();
      if (effect.type === "close") this.#drop(event.type === "closed" ? SHUTDOWN_TIMES : closeTimes(limits));
      // Calls that the server has accepted already may still be answered.
      if (effect.type === "leave") this.#drop(closeTimes(limits), this.watch.unused(LIMITS.drainMs));
      if (effect.type === "reconnect-later")
        this.#reconnectTimer = setTimeout(() => this.connect("timer").catch(() => undefined), effect.delayMs);
    }
    if (state !== before) this.#server.onStatus();
    return refused;
  }

  #startAttempt(): void {
    clearTimeout(this.#reconnectTimer);
    this.#attempt = startAttempt(
      {
        ...this.#server.parts,
        onAuthLost: (error) => this.#onAuthLost(error),
        onListChanged: () => this.watch.onListChanged(),
        onWait: (text) => {
          this.#waits = text;
          this.#server.onStatus();
        },
        hold: (connection) => {
          this.#connection = connection;
        },
        // A connection that was replaced or is being closed says nothing about this server any more.
        onClosed: (connection) => {
          if (connection && this.connected === connection) this.#onDropped(connection.whyClosed());
        },
        onOpen: (connection) => {
          this.dispatch({ type: "opened", nowMs: performance.now() });
          this.watch.start(connection);
          if (!connection.isFromMemory()) this.#server.onTools();
        },
        onFailed: (error) => {
          this.dispatch({ type: "open-failed", error, nowMs: performance.now() });
        },
        onSettled: () => {
          this.#attempt = undefined;
          this.#waits = undefined;
        },
        isForCall: this.#wantedBy === "call",
      },
      this.#context,
    );
  }

  #onAuthLost(error: ThreadsError): void {
    if (this.#phase.name === "connected") this.#context.log.warn(error.message);
    this.dispatch({ type: "auth-lost", error });
  }

  #onDropped(message: string): void {
    const { parts, limits } = this.#server;
    const error = droppedError(parts.name, parts.redact(message));
    this.dispatch({ type: "dropped", error, nowMs: performance.now() });
    const reported = statusError(parts.definition(), this.#phase, limits.reconnectMs) ?? error;
    this.#context.log.warn(`${reported.message} ${reported.remedy ?? "The next call connects again."}`);
  }

  /** Gives the connection up without waiting for its end; `ended` waits. */
  #drop(times: CloseTimes, after?: Promise<void>): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.watch.stop();
    clearTimeout(this.#reconnectTimer);
    this.#leaving.close(connection, times, after);
  }
}
