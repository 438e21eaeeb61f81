/**
 * One configured server: carries out what `transition` (state.ts) decides. Owns the server's phase, its connection and
 * the attempt to open one: concurrent users share the attempt, and a failure stays with this server. The attempt is in
 * attempt.ts, the clocks and lists beside an open connection in watch.ts, a call in call.ts, the server's tools and
 * resources in offer.ts. Called by: supervisor.ts.
 */

import type { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import { type CloseTimes, SHUTDOWN_TIMES } from "../../shared/programs/close-times.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import type { Approvals } from "../approval/approval.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Connection } from "../mcp/mcp.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import type { Redactor } from "../secrets/secrets.ts";
import { type Attempt, type AttemptContext, startAttempt } from "./attempt.ts";
import { type AskedOfServer, callServer, isExcluded, orAgain } from "./call.ts";
import { droppedError, heldBackError, type Refusal, refusal, statusError } from "./errors.ts";
import { createLeaving, type Leaving } from "./leaving.ts";
import type { KnownTools } from "./offer.ts";
import { createParts, type ServerParts, type ServerTimings } from "./parts.ts";
import { closeTimes, lifecyclePolicy, type ServerLimits } from "./policy.ts";
import {
  type LifecyclePolicy,
  type ServerEvent,
  type ServerPhase,
  transition,
  type WantedBy,
} from "./state.ts";
import { serverStatus } from "./status.ts";
import { ConnectionWatch, type WatchedServer } from "./watch.ts";

export interface ServerContext extends AttemptContext {
  /** Absent: `LIMITS`. */
  limits?: ServerLimits;
  approvals: Pick<Approvals, "of">;
  onStatus: (server: Server) => void;
  /** The server listed its tools. */
  onTools: (server: Server) => void;
}

export class Server {
  readonly #context: ServerContext;
  readonly #limits: ServerLimits;
  readonly #lifetime = new AbortController();
  readonly #parts: ServerParts;
  readonly #watch: ConnectionWatch;
  readonly #leaving: Leaving;
  #definition: ServerDefinition;
  #phase: ServerPhase;
  #attempt: Attempt | undefined;
  /** Who asked for a connection last. */
  #wantedBy: WantedBy = "background";
  #connection: Connection | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;

  constructor(definition: ServerDefinition, context: ServerContext) {
    this.#definition = definition;
    this.#context = context;
    this.#limits = context.limits ?? LIMITS;
    this.#phase = definition.enabled ? { name: "idle" } : { name: "disabled" };
    this.#parts = createParts({
      definition: () => this.#definition,
      lifetime: this.#lifetime.signal,
      log: context.log,
      isOpen: (connection) => this.#connection === connection,
      onLate: () => {
        if (this.#connected) context.onTools(this);
      },
    });
    this.#watch = this.#createWatch();
    this.#leaving = createLeaving(this.name, context.log, this.#lifetime.signal);
  }

  #createWatch(): ConnectionWatch {
    const server: WatchedServer = {
      ...this.#parts,
      log: this.#context.log,
      policy: () => this.#policy,
      connected: () => this.#connected,
      onIdle: () => this.#dispatch({ type: "idle-expired" }),
      onSick: (message) => this.#onDropped(message),
      onListed: () => {
        this.#context.onStatus(this);
        this.#context.onTools(this);
      },
    };
    return new ConnectionWatch(server, this.#limits);
  }

  get definition(): ServerDefinition {
    return this.#definition;
  }

  get name(): string {
    return this.#definition.name;
  }

  /** Undefined until a list came from the server or the cache. */
  get tools(): CachedTool[] | undefined {
    return this.#parts.offer.tools;
  }

  get instructions(): string | undefined {
    return this.#parts.offer.instructions;
  }

  /** Undefined until they are known. Offered as commands if the definition says so. */
  get prompts(): CachedPrompt[] | undefined {
    return this.#parts.offer.prompts;
  }

  /** Undefined until they are known. Offered as tools if the definition says so. */
  get resources(): CachedResources | undefined {
    return this.#parts.offer.resources;
  }

  /** What the next session may rely on. */
  get protocol(): StoredProtocol | undefined {
    return this.#parts.offer.protocol;
  }

  /** Takes secrets out of a text about this server. */
  get redact(): Redactor {
    return this.#parts.redact;
  }

  get phase(): ServerPhase["name"] {
    return this.#phase.name;
  }

  /** Milliseconds since the epoch; undefined if the server is not connected. */
  get connectedAt(): number | undefined {
    return this.#phase.name === "connected"
      ? Math.round(performance.timeOrigin + this.#phase.sinceMs)
      : undefined;
  }

  /** Whether ToolSearch has reason to wait for this server. */
  get learning(): boolean {
    return !this.#parts.offer.isOwn && this.#phase.name === "connecting";
  }

  /** The connection, if the server is connected: while its lists are being asked for, it is not. */
  get #connected(): Connection | undefined {
    return this.#phase.name === "connected" ? this.#connection : undefined;
  }

  get #policy(): LifecyclePolicy {
    return lifecyclePolicy(this.#definition, this.#context.settings(), this.#limits);
  }

  /** Takes what a valid cache entry says of the server. */
  restore(known: KnownTools): void {
    this.#parts.offer.restore(known);
    this.#context.onStatus(this);
  }

  /** Leaves it to a call or the user to connect the server. `why`: a sentence without its full stop. */
  holdBack(why: string): void {
    this.#dispatch({ type: "held-back", error: heldBackError(this.name, why) });
  }

  /** Shows the tools of the server that this one replaces until this one has listed its own. */
  inherit(old: Server): void {
    this.#parts.offer.inherit(old.#parts.offer);
  }

  /** Takes a definition that differs in nothing that a connection depends on. */
  update(definition: ServerDefinition): void {
    this.#definition = definition;
    if (this.#connection) this.#watch.start(this.#connection);
    this.#context.onStatus(this);
    if (!definition.enabled || !definition.exposeResources || this.resources) return;
    // The resources are wanted from now on.
    if (this.#connection) void this.#watch.relist();
    else this.connect("background").catch(() => undefined);
  }

  status(): ServerStatus {
    return serverStatus({
      definition: this.#definition,
      phase: this.#phase,
      connection: this.#connection,
      offer: this.#parts.offer,
      settings: this.#context.settings(),
      limits: this.#limits,
      signIn: this.#context.auth?.status(this.name),
    });
  }

  get timings(): Readonly<ServerTimings> {
    return this.#parts.timings;
  }

  /** For a sign-in, which needs no connection. */
  get parts(): ServerParts {
    return this.#parts;
  }

  /** Answers the open connection, or waits for the attempt that all callers share. Rejects with `ThreadsError`. */
  connect(by: WantedBy): Promise<Connection> {
    const nowMs = performance.now();
    this.#wantedBy = by;
    const refused = this.#dispatch({ type: "wanted", by, nowMs });
    if (refused) return Promise.reject(refusal(this.#definition, this.#phase, refused, nowMs));
    const connection = this.#connected;
    if (connection) return Promise.resolve(connection);
    const attempt = this.#attempt;
    if (!attempt) return Promise.reject(refusal(this.#definition, this.#phase, "closing", nowMs));
    if (by === "call" || by === "user") attempt.hurry();
    return attempt.promise;
  }

  /** Whether the current rules hide the tool of this name, also from a caller that still knows it. */
  excludes(tool: string): boolean {
    return isExcluded(this.#definition, tool, this.#context.settings());
  }

  /** Connects if needed, then calls. Never repeats a call. Throws `ThreadsError`. */
  callTool(asked: AskedOfServer): Promise<CallToolResult> {
    const server = {
      ...this.#parts,
      connect: () => this.connect("call"),
      excludes: (tool: string) => this.excludes(tool),
      distrust: this.#distrust,
      relist: () => this.#watch.relist(),
      approvals: this.#context.approvals,
    };
    return this.#watch.during(() => callServer(server, asked));
  }

  /** Connects if needed, then runs the task. Throws `ThreadsError`, or what the task throws. */
  use<T>(task: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#watch.during(async () => {
      const connection = await this.connect("call");
      const ready = { connection, send: () => task(connection) };
      return await orAgain({ distrust: this.#distrust }, ready, async () => task(await this.connect("call")));
    });
  }

  /** Gives up a connection that relied on what is remembered. */
  readonly #distrust = (connection: Connection, isWrong: boolean): void => {
    this.#parts.offer.distrust(isWrong);
    if (this.#connected === connection) this.#dispatch({ type: "renewed" });
  };

  /** Runs the task if the server is connected. */
  ifConnected<T>(task: (connection: Connection) => Promise<T>): Promise<T> | undefined {
    const connection = this.#connected;
    return connection && this.#watch.during(() => task(connection));
  }

  /** Makes a new connection for the user, whatever the state. Rejects with `ThreadsError`. */
  async reconnect(): Promise<void> {
    if (this.#phase.name === "connected") this.#dispatch({ type: "renewed" });
    await this.connect("user");
  }

  /** For a server that is replaced: settles when no call is open, or after `maxMs`. */
  drain(maxMs: number): Promise<void> {
    return this.#watch.unused(maxMs);
  }

  /** Ends the connection and any attempt. Settles when nothing of this server runs. */
  async close(): Promise<void> {
    this.#watch.close();
    this.#dispatch({ type: "closed" });
    this.#lifetime.abort();
    await this.#attempt?.promise.catch(() => undefined);
    await this.#leaving.settled();
    this.#parts.log.close();
  }

  /** Changes the phase by the one function and carries out the effects. Answers why a wish was refused, if it was. */
  #dispatch(event: ServerEvent): Refusal | undefined {
    const before = this.#phase;
    const { state, effects } = transition(before, event, this.#policy);
    this.#phase = state;
    let refused: Refusal | undefined;
    for (const effect of effects) {
      if (effect.type === "refuse") refused = effect.reason;
      if (effect.type === "open") this.#startAttempt();
      if (effect.type === "close")
        this.#drop(event.type === "closed" ? SHUTDOWN_TIMES : closeTimes(this.#limits));
      // Calls that the server has accepted already may still be answered.
      if (effect.type === "leave") this.#drop(closeTimes(this.#limits), this.#watch.unused(LIMITS.drainMs));
      if (effect.type === "reconnect-later")
        this.#reconnectTimer = setTimeout(() => this.connect("timer").catch(() => undefined), effect.delayMs);
    }
    if (state !== before) this.#context.onStatus(this);
    return refused;
  }

  #startAttempt(): void {
    clearTimeout(this.#reconnectTimer);
    this.#attempt = startAttempt(
      {
        ...this.#parts,
        onAuthLost: (error) => this.#onAuthLost(error),
        onListChanged: () => this.#watch.onListChanged(),
        hold: (connection) => {
          this.#connection = connection;
        },
        // A connection that was replaced or is being closed says nothing about this server any more.
        onClosed: (connection) => {
          if (connection && this.#connected === connection) this.#onDropped(connection.whyClosed());
        },
        onOpen: (connection) => {
          this.#dispatch({ type: "opened", nowMs: performance.now() });
          this.#watch.start(connection);
          if (!connection.isFromMemory()) this.#context.onTools(this);
        },
        onFailed: (error) => {
          this.#dispatch({ type: "open-failed", error, nowMs: performance.now() });
        },
        onSettled: () => {
          this.#attempt = undefined;
        },
        isForCall: this.#wantedBy === "call",
      },
      this.#context,
    );
  }

  #onAuthLost(error: ThreadsError): void {
    if (this.#phase.name === "connected") this.#context.log.warn(error.message);
    this.#dispatch({ type: "auth-lost", error });
  }

  #onDropped(message: string): void {
    const error = droppedError(this.name, this.redact(message));
    this.#dispatch({ type: "dropped", error, nowMs: performance.now() });
    const reported = statusError(this.#definition, this.#phase, this.#limits.reconnectMs) ?? error;
    this.#context.log.warn(`${reported.message} ${reported.remedy ?? "The next call connects again."}`);
  }

  /** Gives the connection up without waiting for its end; `close` waits. */
  #drop(times: CloseTimes, after?: Promise<void>): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#watch.stop();
    clearTimeout(this.#reconnectTimer);
    this.#leaving.close(connection, times, after);
  }
}
