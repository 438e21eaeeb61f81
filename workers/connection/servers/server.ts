/**
 * One configured server: its definition, its phase, its connection with the attempt to open one, which concurrent users
 * share, and what runs beside an open connection (idle clock, health check, new lists). What it lists is in lists.ts, when
 * it connects and closes is decided in state.ts, a pure table, and call.ts calls its tools. A failure stays with this server.
 */

import { constants } from "node:buffer";
import type { WorkerEvent } from "../../../src/shared/protocol/contract.ts";
import { lackRemedy, messageOf, ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerStatus, SessionLimits } from "../../../src/shared/protocol/session.ts";
import { asReason, withName } from "../../shared/commands.ts";
import { endIfFileGone, type Log } from "../../shared/log.ts";
import { abortable, during, settledWithin } from "../../shared/pace/abort.ts";
import {
  type CloseTimes,
  createThrottle,
  type Gate,
  type Leave,
  SHUTDOWN_TIMES,
  UNUSED_TIMES,
} from "../../shared/pace/pace.ts";
import { createReader } from "../../shared/pace/turns.ts";
import type { Approvals } from "../approval/approval.ts";
import type { SessionAsks } from "../asks/asks.ts";
import type { AuthServer, SessionAuth } from "../auth/auth.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { exposureOf, namesInRules } from "../config/entry/exposure.ts";
import { idleMinutesOf } from "../config/entry/override.ts";
import type { Settings } from "../config/entry/settings.ts";
import type { ResolvedHttp } from "../config/values/values.ts";
import type { Connection, ConnectOptions, HubUse } from "../mcp/connection.ts";
import { MustNegotiate } from "../mcp/wire/wire.ts";
import { type Redactor, redactError, type Secrets } from "../secrets/redact.ts";
import { HangCheck } from "./hang-check.ts";
import { IdleClock } from "./idle-clock.ts";
import { busyMs, type KnownTools, listsNothing, ServerLists } from "./lists.ts";
import { connectedLine, createKnownSecrets, createServerLog } from "./log.ts";
import type { ProcessEnds } from "./process-ends.ts";
import {
  type LifecyclePolicy,
  type ServerEvent,
  type ServerPhase,
  transition,
  type WantedBy,
} from "./state.ts";
import {
  droppedError,
  heldBackError,
  type Refusal,
  refusal,
  type ServerTimings,
  serverStatus,
  statusError,
} from "./status.ts";
import type { Talkers } from "./talkers.ts";

/** Opens a connection and initializes it. Rejects with an error after which nothing is left running. */
export type Connect = (options: ConnectOptions) => Promise<Connection>;

/** Loads the SDK and the transports with the first attempt, so that the first plan does not wait for them. */
const connectByTransport: Connect = async (options) => {
  const { connect } = await import("../transports/transports.ts");
  options.signal.throwIfAborted();
  return connect(options);
};

/** What all servers of a session share. */
export interface ServerContext {
  cwd: string;
  /** Absolute path of `mcp-npx-cache.json`. */
  npxCacheFile: string;
  /** `--mcp-config`. */
  configPath?: string | undefined;
  /** Where the hub of shared servers is. Absent: no server is shared. */
  hub?: { agentDir: string; onUnusable: (why: string) => void } | undefined;
  log: Log;
  emit: (event: WorkerEvent) => void;
  gate: Gate;
  /** The ends of processes for which the next one of the same name waits. */
  ends: ProcessEnds;
  /** Absent: nobody records which server's bytes are being read. */
  talkers?: Talkers;
  /** The settings that hold now; they may change while the session is open. */
  settings: () => Settings;
  /** Absent: `LIMITS`. */
  limits?: Omit<SessionLimits, "publishMs" | "publishAloneMs">;
  /** Absent: the transports open the connection. */
  connect?: Connect;
  /** Absent: nobody signs in. */
  auth?: Pick<SessionAuth, "of" | "forTrial" | "status" | "hasOther">;
  /** Absent: no server can ask the user. */
  asks?: Pick<SessionAsks, "of"> | undefined;
  approvals: Pick<Approvals, "of">;
  /** Why the server may not be used from now on. Absent: no permission is taken back. */
  takenBack?: (definition: ServerDefinition) => ThreadsError | undefined;
  onStatus: (server: Server) => void;
  /** The server listed its tools. */
  onTools: (server: Server) => void;
}

export class Server extends ServerLists {
  readonly log;
  readonly timings: ServerTimings = { slowestCallMs: 0, lateCalls: 0 };
  readonly #secrets = createKnownSecrets();
  readonly #context: ServerContext;
  readonly #limits;
  readonly #idle: IdleClock;
  readonly #refresh;
  #definition: ServerDefinition;
  #phase: ServerPhase;
  /** The attempt that all users share. Nobody has to handle its rejection. */
  #attempt: { promise: Promise<Connection>; urgent: AbortController } | undefined;
  /** The connection that is held, also while its lists are being asked for. */
  #connection: Connection | undefined;
  /** Connections that ended before the server counted as connected: a process can die right behind its last list. */
  readonly #endedEarly = new WeakSet<Connection>();
  #waits: string | undefined;
  #reconnectTimer: NodeJS.Timeout | undefined;
  #healthCheck: NodeJS.Timeout | undefined;
  readonly #hangs = new HangCheck<Connection>((connection, why) => {
    if (this.#connected === connection) this.#onDropped(`${this.name} ${why}.`);
  });
  /** Settles when every connection that was given up so far is closed. Never rejects. */
  #closing: Promise<unknown> = Promise.resolve();

  constructor(definition: ServerDefinition, context: ServerContext) {
    super(context.asks !== undefined);
    const { log, limits = LIMITS } = context;
    this.#definition = definition;
    this.#context = context;
    this.#limits = limits;
    this.#phase = definition.enabled ? { name: "idle" } : { name: "disabled" };
    this.log = createServerLog(definition.name, { log, redact: this.redact });
    this.#refresh = createThrottle({
      delayMs: LIMITS.refreshDelayMs,
      intervalMs: limits.refreshIntervalMs,
      longestMs: limits.refreshLongestMs,
      task: () => this.relist(),
    });
    this.#idle = new IdleClock(
      () => this.#policy.idleTimeoutMs,
      () => {
        log.info(`${this.name} is closed: nothing used it`);
        this.#dispatch({ type: "idle-expired" });
      },
    );
  }

  get definition(): ServerDefinition {
    return this.#definition;
  }

  get name(): string {
    return this.#definition.name;
  }

  /** Takes the secrets known so far out of a text about this server: they are known only once it is resolved. */
  get redact(): Redactor {
    return this.#secrets.redact;
  }

  /** Those that `redact` takes out. */
  get secrets(): Secrets {
    return this.#secrets.known;
  }

  get phase(): ServerPhase["name"] {
    return this.#phase.name;
  }

  /** The connection, if the server is connected: while its lists are being asked for, it is not. */
  get #connected(): Connection | undefined {
    return this.#phase.name === "connected" ? this.#connection : undefined;
  }

  /** Milliseconds since the epoch; undefined if the server is not connected. */
  get connectedAt(): number | undefined {
    const phase = this.#phase;
    // The clock of the day at the thread's start says nothing after a sleep of the machine, or once it was set right.
    return phase.name === "connected"
      ? Math.round(Date.now() - (performance.now() - phase.sinceMs))
      : undefined;
  }

  /** Whether ToolSearch has reason to wait for this server. */
  get learning(): boolean {
    return (!this.hasOwnLists || listsNothing(this)) && this.#phase.name === "connecting";
  }

  get approvals(): Pick<Approvals, "of"> {
    return this.#context.approvals;
  }

  get #policy(): LifecyclePolicy {
    const { lifecycle } = this.#definition;
    const idleTimeoutMs = idleMinutesOf(this.#definition, this.#context.settings().idleTimeout) * 60_000;
    return { lifecycle, idleTimeoutMs, reconnectMs: this.#limits.reconnectMs };
  }

  /** For a connection that another may replace while the session goes on. */
  get #closeTimes(): CloseTimes {
    return { termMs: this.#limits.closeTermMs, killMs: this.#limits.closeKillMs };
  }

  status(): ServerStatus {
    return serverStatus(this, {
      phase: this.#phase,
      waits: this.#waits,
      connection: this.#connection,
      settings: this.#context.settings(),
      reconnectMs: this.#limits.reconnectMs,
      signIn: this.#context.auth?.status(this.name),
    });
  }

  /** Takes what a valid cache entry says of the server. */
  restore(known: KnownTools): void {
    this.restoreLists(known);
    this.#context.onStatus(this);
  }

  /** Leaves it to a call or the user to connect the server. `why`: a sentence without its full stop. */
  holdBack(why: string): void {
    this.#dispatch({ type: "held-back", error: heldBackError(this.name, why) });
  }

  /** Takes a definition that differs in nothing that a connection depends on. */
  update(definition: ServerDefinition): void {
    const before = this.#definition;
    this.#definition = definition;
    if (this.#connection) this.#watch(this.#connection);
    this.#context.onStatus(this);
    const wantsResources = definition.exposeResources && !this.resources;
    const wantsSkills = before.skillPolicy.use === false && definition.skillPolicy.use !== false;
    if (!definition.enabled || !(wantsResources || wantsSkills)) return;
    // They are wanted from now on.
    if (this.#connection) void this.relist();
    else this.connect("background").catch(() => undefined);
  }

  /** Whether the current rules hide the tool of this name, also from a caller that still knows it. */
  excludes(tool: string): boolean {
    const { toolPrefix, directTools } = this.#context.settings();
    const names = namesInRules(this.name, tool, this.#definition.toolPrefix ?? toolPrefix);
    return exposureOf(tool, this.#definition, directTools, names) === "hidden";
  }

  /** What the sign-in knows of the server. `target`: as it is resolved. */
  authServer({ url, headers, ca }: Pick<ResolvedHttp, "url" | "headers" | "ca">): AuthServer {
    const { definition, redact, log } = this;
    return { definition, url, headers, ca, redact, onSecret: this.#secrets.add, onNote: log.note };
  }

  /** Answers the open connection, or waits for the attempt that all callers share. Rejects with `ThreadsError`. */
  connect(by: WantedBy): Promise<Connection> {
    const takenBack = this.#context.takenBack?.(this.#definition);
    if (takenBack) return Promise.reject(takenBack);
    const nowMs = performance.now();
    const refused = this.#dispatch({ type: "wanted", by, nowMs });
    const refuse = (reason: Refusal): Promise<never> =>
      Promise.reject(refusal(this.#definition, this.#phase, reason, nowMs));
    if (refused) return refuse(refused);
    const connection = this.#connected;
    // A call must not be sent to a process that is about to be replaced.
    const check = by === "call" ? this.#hangs.open : undefined;
    if (connection && check) return check.then(() => this.connect(by));
    if (connection) return Promise.resolve(connection);
    const attempt = this.#attempt;
    if (!attempt) return refuse("closing");
    // A person or a call waits: the attempt no longer queues behind background connects.
    if (by === "call" || by === "user") attempt.urgent.abort();
    return attempt.promise;
  }

  /** Makes a new connection for the user, whatever the state. `isGentle`: open calls keep theirs. Rejects with `ThreadsError`. */
  async reconnect(isGentle = false): Promise<void> {
    if (this.#connected) this.#dispatch(isGentle ? { type: "outdated" } : { type: "renewed", leave: "end" });
    await this.connect("user");
  }

  /** Runs `use` as a use of the server: the idle time counts from its end. */
  async during<T>(use: () => Promise<T>): Promise<T> {
    const endUse = this.#idle.begin();
    // Servers that nobody waits for let this one connect first.
    const leaveGate = this.#connected ? undefined : this.#context.gate.use();
    try {
      return await use();
    } finally {
      leaveGate?.();
      endUse();
      // After the use: a list must not stand in the way of a call.
      if (this.#connected?.isStale() || (this.#connected && this.areListsStale)) this.#refresh.request();
    }
  }

  /** Connects if needed, then runs the task. Throws `ThreadsError`, or what the task throws. */
  use<T>(task: (connection: Connection) => Promise<T>): Promise<T> {
    return this.during(async () => {
      const connection = await this.connect("call");
      const ready = { connection, send: () => task(connection) };
      return await this.orAgain(ready, async () => task(await this.connect("call")));
    });
  }

  /** Runs the task if the server is connected. */
  ifConnected<T>(task: (connection: Connection) => Promise<T>): Promise<T> | undefined {
    const connected = this.#connected;
    return connected && this.during(() => task(connected));
  }

  /**
   * Sends what is ready. If the server is not the one that was remembered, nothing has run, and the request is sent once
   * more over a connection that asks the server first.
   */
  async orAgain<T>(
    { connection, send }: { connection: Connection; send: () => Promise<T> },
    again: () => Promise<T>,
  ): Promise<T> {
    try {
      return await this.#hangs.during(connection, send);
    } catch (error) {
      const isWrong = error instanceof MustNegotiate;
      const isPersons = error instanceof ThreadsError && PERSONS.has(error.code);
      if (isWrong || (connection.isFromMemory() && !isPersons)) this.doubt(connection, isWrong);
      if (!isWrong) throw error;
      return await again();
    }
  }

  /** What the connection relies on does not hold: the next one asks the server. `isWrong`: the server is of another era. */
  doubt(connection: Connection, isWrong: boolean): void {
    this.distrustMemory(isWrong);
    if (this.#connected === connection) this.#dispatch({ type: "outdated" });
  }

  /**
   * Lists the tools again over the open connection. What cannot be listed now is asked for again later, since a server tells of
   * a change once. Never rejects.
   */
  async relist(): Promise<void> {
    const connection = this.#connected;
    if (!connection) {
      // Its lists may have been asked for before they changed.
      if (this.#connection) this.#refresh.request();
      return;
    }
    try {
      if (!(await this.listAgain(connection))) return;
      this.#context.onStatus(this);
      this.#context.onTools(this);
    } catch (error) {
      // What ended the connection has its own line, and the end of the session needs none.
      if (!this.isHeld(connection)) return;
      const reason = this.redact(asReason(this.name, messageOf(error)));
      this.#context.log.warn(`${this.name}: its tools could not be listed again: ${reason}`);
      this.#refresh.request(busyMs(error));
    }
  }

  /** For a server that is replaced: closes it when no call is open, which may be at once, after `maxMs`, or when the signal fires. */
  async closeWhenIdle(maxMs: number, signal: AbortSignal): Promise<void> {
    if (this.#idle.isUsed)
      await settledWithin(abortable(this.#idle.unused(), signal, "The wait for open calls"), maxMs);
    await this.close();
  }

  /** Ends the connection and any attempt. Settles when nothing of this server runs. `leave`: what becomes of a shared one. */
  async close(leave: Leave = "now"): Promise<void> {
    this.#refresh.stop();
    this.#dispatch({ type: "closed", leave });
    this.lifetime.abort();
    const attempt = this.#attempt?.promise.catch(() => undefined);
    if (attempt) this.#context.ends.add(this.name, this.#definition.target, attempt);
    await attempt;
    await this.#closing;
    this.log.close();
  }

  protected isHeld(connection: Connection): boolean {
    return this.#connection === connection;
  }

  protected onLateList(): void {
    if (this.#connected) this.#context.onTools(this);
  }

  /** Changes the phase by the one function and carries out the effects. Answers why a wish was refused, if it was. */
  #dispatch(event: ServerEvent): Refusal | undefined {
    const before = this.#phase;
    const { state, effects } = transition(before, event, this.#policy);
    this.#phase = state;
    let refused: Refusal | undefined;
    for (const effect of effects) {
      if (effect.type === "refuse") refused = effect.reason;
      if (effect.type === "open" && event.type === "wanted") this.#startAttempt(event.by);
      if (effect.type === "close")
        this.#giveUp({
          ...(event.type === "closed" ? SHUTDOWN_TIMES : this.#closeTimes),
          leave: "leave" in event ? event.leave : event.type === "dropped" ? "retire" : "keep",
        });
      // Calls that the server has accepted already may still be answered.
      if (effect.type === "close-when-idle") this.#giveUp(this.#closeTimes, this.#idle.unused());
      if (effect.type === "reconnect-later")
        this.#reconnectTimer = setTimeout(() => this.connect("timer").catch(() => undefined), effect.delayMs);
    }
    if (state !== before) this.#context.onStatus(this);
    return refused;
  }

  #startAttempt(by: WantedBy): void {
    clearTimeout(this.#reconnectTimer);
    const urgent = new AbortController();
    const promise = this.#attemptToOpen(urgent.signal, by).finally(() => {
      this.#attempt = undefined;
      this.#waits = undefined;
    });
    // Nobody waits for a background connect; its failure is in the server's state and in the log.
    promise.catch(() => undefined);
    this.#attempt = { promise, urgent };
  }

  async #attemptToOpen(urgent: AbortSignal, by: WantedBy): Promise<Connection> {
    const { gate, log, onTools } = this.#context;
    const noWait = AbortSignal.any([urgent, this.lifetime.signal]);
    const leaveGate = await gate.enter(noWait);
    await this.#context.ends.before(this.#definition, this.#limits.closeKillMs, this.lifetime.signal);
    const startedAt = performance.now();
    const standAside = (): Promise<void> | undefined => gate.aside(noWait);
    try {
      const connection = await during(this.lifetime.signal, (signal) =>
        this.#open(signal, { by, standAside }),
      );
      this.#dispatch({ type: "opened", nowMs: performance.now() });
      this.#watch(connection);
      if (this.hasListed(connection)) onTools(this);
      if (this.#endedEarly.has(connection)) this.#onDropped(connection.whyClosed());
      return connection;
    } catch (error) {
      await endIfFileGone(error, log);
      const failure = this.#attemptFailure(error);
      if (!this.lifetime.signal.aborted) log.error(withName(this.name, failure.message));
      const nowMs = performance.now();
      this.#dispatch({ type: "open-failed", error: failure, nowMs, tookMs: nowMs - startedAt });
      throw failure;
    } finally {
      leaveGate();
    }
  }

  /** The error of a failed attempt without secrets: itself if it is meant for users, else `internal`. */
  #attemptFailure(error: unknown): ThreadsError {
    const shown = redactError(error, this.redact);
    if (shown instanceof ThreadsError) return shown;
    const message = withName(this.name, this.redact(messageOf(shown)));
    return new ThreadsError("internal", message, { remedy: lackRemedy(error), cause: error });
  }

  /** Opens a connection, holds it, and lists over it what the server has. */
  async #open(
    signal: AbortSignal,
    { by, standAside }: { by: WantedBy } & Required<Pick<ConnectOptions, "standAside">>,
  ): Promise<Connection> {
    const { log, connect = connectByTransport } = this.#context;
    signal.throwIfAborted();
    // It may have waited for the connects of others.
    const takenBack = this.#context.takenBack?.(this.#definition);
    if (takenBack) throw takenBack;
    const startedAt = performance.now();
    let opened: Connection | undefined;
    const connection = await connect({
      ...this.#connectOptions(by),
      signal,
      standAside,
      onClosed: () => {
        // A connection that was replaced or is being closed says nothing about this server any more.
        if (opened && this.#connected === opened) this.#onDropped(opened.whyClosed());
        else if (opened) this.#endedEarly.add(opened);
      },
    });
    opened = connection;
    this.#connection = connection;
    if (connection.isFromMemory()) {
      log.info(`${connectedLine(this, connection, 0)}, as remembered: nothing was asked`);
      return connection;
    }
    try {
      await standAside();
      await this.list(connection, signal, this.#refresh.request);
    } catch (error) {
      this.#connection = undefined;
      const failure = signal.aborted
        ? new ThreadsError("cancelled", `${this.name} was closed while it was being connected.`)
        : error;
      await connection.close(signal.aborted ? UNUSED_TIMES : { ...SHUTDOWN_TIMES, leave: "retire" });
      throw failure;
    }
    const tookMs = Math.round(performance.now() - startedAt);
    this.timings.startMs = tookMs;
    log.info(connectedLine(this, connection, tookMs));
    return connection;
  }

  #connectOptions(by: WantedBy): Omit<ConnectOptions, "signal" | "standAside" | "onClosed"> {
    const { name, definition, redact } = this;
    const { cwd, npxCacheFile, configPath, settings, emit, talkers, auth, asks, hub } = this.#context;
    const { maxMessageBytes, caFile } = settings();
    const { note: onNote, message: onLogMessage } = this.log;
    return {
      definition,
      cwd,
      npxCacheFile,
      configPath,
      // No text is longer, so no longer message could be read.
      maxMessageBytes: Math.min(maxMessageBytes, constants.MAX_STRING_LENGTH),
      caFile,
      onSpawn: (pid) => emit({ type: "spawned", pid, server: name }),
      onExit: (pid) => emit({ type: "exited", pid, server: name }),
      onNote,
      onWait: (text) => {
        this.#waits = text && redact(text);
        this.#context.onStatus(this);
      },
      onLogMessage,
      onSecrets: this.#secrets.setDefined,
      onSecret: this.#secrets.add,
      redact,
      auth: (target) => auth?.of(this.authServer(target)),
      onAuthLost: (error) => {
        if (this.#phase.name === "connected") this.#context.log.warn(error.message);
        this.#dispatch({ type: "auth-lost", error });
      },
      asks: asks?.of({
        name,
        redact,
        onNote,
        may: { ask: definition.elicitation, sample: definition.sampling && !definition.project },
      }),
      // A call waits for the connection, and for nothing that can be known without asking.
      remembered: this.remembered(by === "call"),
      onListChanged: () => this.#refresh.request(),
      reader: createReader({ onBytes: talkers?.of(name), onNote }),
      hub: definition.shared === true && hub ? this.#hubUse(hub, by) : undefined,
    };
  }

  #hubUse({ agentDir, onUnusable }: NonNullable<ServerContext["hub"]>, by: WantedBy): HubUse {
    const minutes = this.#definition.idleTimeoutMinutes ?? this.#context.settings().idleTimeout;
    return {
      agentDir,
      // 0 is for as long as the session lasts: after that somebody may want it or not.
      idleMs: minutes === 0 ? LIMITS.idleTimeoutMs : minutes * 60_000,
      isWanted: by === "user",
      onUnusable: (why) => {
        this.log.note(`is not shared: ${why}`);
        onUnusable(why);
      },
      onChange: () => this.#context.onStatus(this),
    };
  }

  /** A connection is open, or the definition that says how to watch it has changed. */
  #watch(connection: Connection): void {
    this.#idle.start();
    clearInterval(this.#healthCheck);
    if (this.#definition.lifecycle !== "keep-alive") return;
    this.#healthCheck = setInterval(() => {
      // A server that works on a call may answer nothing else until it is done; the call has a time limit of its own.
      if (this.#idle.isUsed) return;
      connection.ping(LIMITS.healthAnswerMs).catch((error) => {
        // A connection that was replaced meanwhile says nothing about the server any more.
        if (this.#connected !== connection || this.#idle.isUsed) return;
        const reason = asReason(this.name, messageOf(error)).replace(/\.$/, "");
        this.#onDropped(`${this.name} did not answer its health check: ${reason}.`);
      });
    }, LIMITS.healthCheckMs);
  }

  #onDropped(message: string): void {
    const error = droppedError(this.name, this.redact(message));
    this.#dispatch({ type: "dropped", error, nowMs: performance.now() });
    const reported = statusError(this.#definition, this.#phase, this.#limits.reconnectMs) ?? error;
    this.#context.log.warn(`${reported.message} ${reported.remedy ?? "The next call connects again."}`);
  }

  /** Uses the connection no more. `after`: it is closed when this settles, or when the server is closed. */
  #giveUp(times: CloseTimes, after?: Promise<unknown>): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#idle.stop();
    clearInterval(this.#healthCheck);
    clearTimeout(this.#reconnectTimer);
    if (!connection) return;
    // Without a reason to wait it is closed now, not in a later turn.
    const closed = after
      ? during(this.lifetime.signal, (signal) => {
          const ended = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          return Promise.race([after, ended]);
        }).then(() => connection.close(times))
      : connection.close(times);
    const { log } = this.#context;
    const settled = closed.catch((error) => log.error(`${this.name}: closing failed: ${messageOf(error)}`));
    this.#closing = Promise.all([this.#closing, settled]).then(() => undefined);
    // Calls that are still answered do not hold up the next connection.
    if (!after) this.#context.ends.add(this.name, connection, settled);
  }
}

/** Failures that say nothing about the server: the user gave the call up, or has to sign in. */
const PERSONS = new Set(["cancelled", "needs_auth"]);
