/**
 * One configured server: carries out what `transition` decides. Owns its connection and its clocks, and what it
 * offers (server-offer.ts); concurrent users share one attempt; a failure stays with this server. Called by the
 * supervisor.
 */

import { messageOf, ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import type { WorkerEvent } from "../../../src/shared/protocol/events.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { SessionLimits } from "../../../src/shared/protocol/session.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { Log } from "../../shared/log.ts";
import { abortable, during } from "../../shared/pace/abort.ts";
import type { Gate } from "../../shared/pace/gate.ts";
import { createThrottle, type Throttle } from "../../shared/pace/throttle.ts";
import { type ServerDefinition, transportOf } from "../config/entry/definition.ts";
import { exposureOf, mayBeDirect, namesInRules } from "../config/entry/exposure.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { CallRequest, CloseTimes, Connection } from "../mcp/mcp.ts";
import { asReason, withName } from "../mcp/mcp.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import { offeredTools } from "../offers/offers.ts";
import { createRedactor, NO_SECRETS, type Redactor, redactError } from "../secrets/secrets.ts";
import { createIdleClock, startHealthCheck } from "./clocks.ts";
import { excludedTool, heldBackError, refusal, statusError, unknownTool } from "./errors.ts";
import { createServerLog, type ServerLog } from "./log.ts";
import { type KnownTools, ServerOffer } from "./offer.ts";
import {
  type LifecyclePolicy,
  type ServerEffect,
  type ServerEvent,
  type ServerPhase,
  transition,
  type WantedBy,
} from "./state.ts";
import type { Talkers } from "./talkers.ts";

export interface ServerContext {
  cwd: string;
  npxCacheFile: string;
  log: Log;
  emit: (event: WorkerEvent) => void;
  gate: Gate;
  /** Absent: nobody wants to know who is talking. */
  talkers?: Talkers;
  /** As they are now: they may change while the session is open. */
  settings: () => Settings;
  /** `LIMITS`, unless the session was given others. */
  limits?: ServerLimits;
  onStatus: (server: Server) => void;
  /** The server listed its tools. */
  onTools: (server: Server) => void;
}

/** The limits of a server's life that a session may be given. */
export type ServerLimits = Omit<SessionLimits, "publishMs" | "publishAloneMs">;

interface Attempt {
  promise: Promise<Connection>;
  /** Fires when a user waits for it: it then no longer queues behind background connects. */
  urgent: AbortController;
}

type Refusal = Extract<ServerEffect, { type: "refuse" }>["reason"];

const shutdownTimes: CloseTimes = { termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs };

export class Server {
  readonly #context: ServerContext;
  readonly #limits: ServerLimits;
  readonly #lifetime = new AbortController();
  readonly #refresh: Throttle;
  readonly #idle = createIdleClock({
    timeoutMs: () => this.#policy.idleTimeoutMs,
    onExpired: () => {
      this.#context.log.info(`${this.name} is closed: nothing used it`);
      this.#dispatch({ type: "idle-expired" });
    },
  });
  #definition: ServerDefinition;
  #phase: ServerPhase;
  #attempt: Attempt | undefined;
  #connection: Connection | undefined;
  readonly #offer = new ServerOffer({
    definition: () => this.#definition,
    lifetime: this.#lifetime.signal,
    isOpen: (connection) => this.#connection === connection,
    onLate: () => {
      if (this.#phase.name === "connected") this.#context.onTools(this);
    },
    onNote: (note) => this.#log.note(note),
  });
  #redact: Redactor = createRedactor(NO_SECRETS);
  readonly #log: ServerLog;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #stopHealthCheck: () => void = () => undefined;
  /** Settles when every connection that was given up is closed. */
  #closing: Promise<unknown> = Promise.resolve();

  constructor(definition: ServerDefinition, context: ServerContext) {
    this.#definition = definition;
    this.#context = context;
    this.#limits = context.limits ?? LIMITS;
    this.#refresh = createThrottle({
      delayMs: LIMITS.refreshDelayMs,
      intervalMs: this.#limits.refreshIntervalMs,
      longestMs: this.#limits.refreshLongestMs,
      task: () => this.#relist(),
    });
    this.#log = createServerLog(definition.name, { log: context.log, redact: (text) => this.#redact(text) });
    this.#phase = definition.enabled ? { name: "idle" } : { name: "disabled" };
  }

  get definition(): ServerDefinition {
    return this.#definition;
  }

  get name(): string {
    return this.#definition.name;
  }

  /** Undefined until a list came from the server or the cache. */
  get tools(): CachedTool[] | undefined {
    return this.#offer.tools;
  }

  get instructions(): string | undefined {
    return this.#offer.instructions;
  }

  /** For the cache alone. Undefined where they were not listed. */
  get prompts(): CachedPrompt[] | undefined {
    return this.#offer.prompts;
  }

  /** Undefined until they are known. Offered as tools where the definition says so. */
  get resources(): CachedResources | undefined {
    return this.#offer.resources;
  }

  /** Takes the definition's secrets out of a text about this server. */
  get redact(): Redactor {
    return this.#redact;
  }

  get phase(): ServerPhase["name"] {
    return this.#phase.name;
  }

  /** Whether ToolSearch has reason to wait for this server. */
  get learning(): boolean {
    return !this.#offer.isOwn && this.#phase.name === "connecting";
  }

  get #policy(): LifecyclePolicy {
    const { lifecycle, idleTimeoutMinutes } = this.#definition;
    const minutes = idleTimeoutMinutes ?? (lifecycle === "lazy" ? this.#context.settings().idleTimeout : 0);
    return { lifecycle, idleTimeoutMs: minutes * 60_000, reconnectMs: this.#limits.reconnectMs };
  }

  get #closeTimes(): CloseTimes {
    return { termMs: this.#limits.closeTermMs, killMs: this.#limits.closeKillMs };
  }

  /** Takes what a valid cache entry tells. */
  restore(known: KnownTools): void {
    this.#offer.restore(known);
    this.#context.onStatus(this);
  }

  /** Leaves it to a call or the user to connect it. `why`: a sentence without its end. */
  holdBack(why: string): void {
    this.#dispatch({ type: "held-back", error: heldBackError(this.name, why) });
  }

  /** Shows the tools of the server that this one replaces until it has listed its own. */
  inherit(old: Server): void {
    this.#offer.inherit(old.#offer);
  }

  /** Takes a definition that differs in nothing that a connection depends on. */
  update(definition: ServerDefinition): void {
    this.#definition = definition;
    if (this.#connection) this.#watch(this.#connection);
    this.#context.onStatus(this);
    if (!definition.enabled || !definition.exposeResources || this.resources) return;
    // They were not wanted until now.
    if (this.#connection) void this.#relist();
    else this.connect("background").catch(() => undefined);
  }

  status(): ServerStatus {
    const pid = this.#connection?.pid;
    const error = statusError(this.#definition, this.#phase, this.#limits.reconnectMs);
    return {
      name: this.name,
      state: this.#phase.name,
      lifecycle: this.#definition.lifecycle,
      transport: this.#connection?.transport ?? transportOf(this.#definition),
      source: this.#definition.file,
      ...(this.#definition.description === undefined ? {} : { description: this.#definition.description }),
      toolCount: this.tools?.length ?? 0,
      resourceCount: offeredTools(this).length - (this.tools?.length ?? 0),
      toolsKnown: this.tools !== undefined,
      direct: mayBeDirect(this.#definition, this.#context.settings().directTools),
      ...(error ? { error: toWireError(error) } : {}),
      ...(pid === undefined ? {} : { pid }),
    };
  }

  /** The open connection, or the attempt that all callers share. Rejects with `ThreadsError`. */
  connect(by: WantedBy): Promise<Connection> {
    const nowMs = performance.now();
    const refused = this.#dispatch({ type: "wanted", by, nowMs });
    if (refused) return Promise.reject(refusal(this.#definition, this.#phase, refused, nowMs));
    if (this.#connection && this.#phase.name === "connected") return Promise.resolve(this.#connection);
    const attempt = this.#attempt;
    if (!attempt) return Promise.reject(refusal(this.#definition, this.#phase, "closing", nowMs));
    if (by === "call" || by === "user") attempt.urgent.abort();
    return attempt.promise;
  }

  /** Changes the state by the one function and carries out the effects. Answers why a wish was refused, if it was. */
  #dispatch(event: ServerEvent): Refusal | undefined {
    const before = this.#phase;
    const { state, effects } = transition(before, event, this.#policy);
    this.#phase = state;
    let refused: Refusal | undefined;
    for (const effect of effects) {
      if (effect.type === "refuse") refused = effect.reason;
      if (effect.type === "open") this.#startAttempt();
      if (effect.type === "close") this.#drop(event.type === "closed" ? shutdownTimes : this.#closeTimes);
      if (effect.type === "reconnect-later") this.#reconnectLater(effect.delayMs);
    }
    if (state !== before) this.#context.onStatus(this);
    return refused;
  }

  #startAttempt(): void {
    clearTimeout(this.#reconnectTimer);
    const urgent = new AbortController();
    const promise = this.#open(urgent.signal).finally(() => {
      this.#attempt = undefined;
    });
    // Background connects have nobody who waits; their failure is in the state and in the log.
    promise.catch(() => undefined);
    this.#attempt = { promise, urgent };
  }

  #reconnectLater(delayMs: number): void {
    this.#reconnectTimer = setTimeout(() => {
      this.connect("timer").catch(() => undefined);
    }, delayMs);
  }

  async #open(urgent: AbortSignal): Promise<Connection> {
    const leave = await this.#context.gate.enter(AbortSignal.any([urgent, this.#lifetime.signal]));
    try {
      const connection = await during(this.#lifetime.signal, (signal) => this.#openNow(signal));
      this.#dispatch({ type: "opened", nowMs: performance.now() });
      this.#watch(connection);
      this.#context.onTools(this);
      return connection;
    } catch (error) {
      const shown = redactError(error, this.#redact);
      const failure =
        shown instanceof ThreadsError
          ? shown
          : new ThreadsError("internal", withName(this.name, this.#redact(messageOf(shown))), {
              cause: error,
            });
      if (!this.#lifetime.signal.aborted) this.#context.log.error(withName(this.name, failure.message));
      this.#dispatch({ type: "open-failed", error: failure, nowMs: performance.now() });
      throw failure;
    } finally {
      leave();
    }
  }

  async #openNow(signal: AbortSignal): Promise<Connection> {
    const { log, emit, cwd, npxCacheFile } = this.#context;
    const startedAt = performance.now();
    // The SDK and the transports: the first plan does not wait until they are loaded.
    const { connect } = await import("../transports/transports.ts");
    signal.throwIfAborted();
    let opened: Connection | undefined;
    const connection = await connect({
      definition: this.#definition,
      cwd,
      signal,
      maxMessageBytes: this.#context.settings().maxMessageBytes,
      npxCacheFile,
      onSpawn: (pid) => emit({ type: "spawned", pid, server: this.name }),
      onExit: (pid) => emit({ type: "exited", pid, server: this.name }),
      onNote: this.#log.note,
      onLogMessage: this.#log.message,
      onSecrets: (secrets) => {
        this.#redact = createRedactor(secrets);
      },
      redact: (text) => this.#redact(text),
      onClosed: () => this.#onClosed(opened),
      onListChanged: () => this.#refresh.request(),
      onBytes: this.#context.talkers?.of(this.name),
    });
    opened = connection;
    this.#connection = connection;
    try {
      await this.#offer.list(connection, signal);
    } catch (error) {
      this.#connection = undefined;
      const failure = signal.aborted
        ? new ThreadsError("cancelled", `${this.name} was closed while it was being connected.`)
        : error;
      await connection.close(shutdownTimes);
      throw failure;
    }
    const tookMs = Math.round(performance.now() - startedAt);
    const via = `${connection.transport}${connection.pid === undefined ? "" : `, pid ${connection.pid}`}`;
    log.info(`${this.name} connected over ${via} in ${tookMs} ms, ${this.tools?.length ?? 0} tools`);
    return connection;
  }

  /** Starts, or starts anew, what runs beside an open connection. */
  #watch(connection: Connection): void {
    this.#idle.start();
    this.#stopHealthCheck();
    if (this.#definition.lifecycle !== "keep-alive") return;
    this.#stopHealthCheck = startHealthCheck(connection.ping, (error) => {
      if (this.#connection !== connection) return;
      const reason = asReason(this.name, messageOf(error)).replace(/\.$/, "");
      this.#onDropped(`${this.name} did not answer its health check: ${reason}.`);
    });
  }

  /** A connection that was replaced or is being closed says nothing about this server any more. */
  #onClosed(connection: Connection | undefined): void {
    if (!connection || this.#connection !== connection || this.#phase.name !== "connected") return;
    this.#onDropped(connection.whyClosed());
  }

  #onDropped(message: string): void {
    const shown = withName(this.name, this.#redact(message));
    const error = new ThreadsError("server_died", shown, { data: { server: this.name } });
    this.#dispatch({ type: "dropped", error, nowMs: performance.now() });
    const told = statusError(this.#definition, this.#phase, this.#limits.reconnectMs) ?? error;
    this.#context.log.warn(`${told.message} ${told.remedy ?? "The next call connects again."}`);
  }

  /** Gives the connection up without waiting for its end; `close` waits. */
  #drop(times: CloseTimes): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#idle.stop();
    this.#stopHealthCheck();
    clearTimeout(this.#reconnectTimer);
    this.#closing = Promise.all([this.#closing, connection?.close(times)]).catch((error) =>
      this.#context.log.error(`${this.name}: closing failed: ${messageOf(error)}`),
    );
  }

  /** Lists the tools again over the open connection. Never rejects. */
  async #relist(): Promise<void> {
    const connection = this.#connection;
    if (!connection || this.#phase.name !== "connected") return;
    try {
      if (!(await this.#offer.listAgain(connection))) return;
      this.#context.onStatus(this);
      this.#context.onTools(this);
    } catch (error) {
      const reason = this.#redact(asReason(this.name, messageOf(error)));
      this.#context.log.warn(`${this.name}: its changed tools could not be listed: ${reason}`);
    }
  }

  /** Whether the rules of now withhold a tool of that name, whoever still has it. */
  excludes(tool: string): boolean {
    const { toolPrefix, directTools } = this.#context.settings();
    const names = namesInRules(this.name, tool, this.#definition.toolPrefix ?? toolPrefix);
    return exposureOf(tool, this.#definition, directTools, names) === "hidden";
  }

  /** Connects where needed, then calls. Never repeats a call: it may have run. */
  async callTool(asked: Omit<CallRequest, "timeoutMs">): Promise<CallToolResult> {
    this.#idle.begin();
    try {
      const connection = await abortable(this.connect("call"), asked.signal, `${this.name}/${asked.tool}`);
      const request = { ...asked, tool: this.#offer.nameOf(asked.tool) };
      if (this.excludes(request.tool)) throw excludedTool(this.#definition, request.tool);
      const timeoutMs = Math.min(
        this.#definition.requestTimeoutMs ?? LIMITS.requestTimeoutMs,
        LIMITS.longestTimerMs,
      );
      if (this.tools?.some(({ name }) => name === request.tool)) {
        return await connection.callTool({ ...request, timeoutMs });
      }
      const uri = await this.#offer.uriOf(request);
      if (uri === undefined) throw unknownTool(this.name, request.tool, this.tools);
      return await connection.readResource({ ...request, uri, timeoutMs });
    } finally {
      this.#idle.end();
    }
  }

  /** For the user: a new connection, whatever the state. Rejects with `ThreadsError`. */
  async reconnect(): Promise<void> {
    if (this.#phase.name === "connected") this.#dispatch({ type: "renewed" });
    await this.connect("user");
  }

  /** Settles when no call is open, or when it has waited long enough. For a server that is replaced. */
  async drain(maxMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, maxMs);
    this.#idle.whenUnused(resolve);
    await promise;
    clearTimeout(timer);
  }

  /** Ends the connection and any attempt. Settles when nothing of this server runs. */
  async close(): Promise<void> {
    this.#refresh.stop();
    this.#dispatch({ type: "closed" });
    this.#lifetime.abort();
    await this.#attempt?.promise.catch(() => undefined);
    await this.#closing;
    this.#log.close();
  }
}
