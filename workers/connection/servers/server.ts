/**
 * One configured server as the session uses it: what it offers (offer.ts), its status, its calls (call.ts). Owns the
 * definition that holds now, and the end of everything that belongs to the server. When it connects and closes is
 * decided in life.ts. Called by: supervisor.ts.
 */

import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { ServerStatus } from "../../../src/shared/protocol/status.ts";
import type { CachedPrompt } from "../../shared/listed/prompt.ts";
import type { CachedResources } from "../../shared/listed/resource.ts";
import type { CachedTool } from "../../shared/listed/tool.ts";
import type { StoredProtocol } from "../../shared/tasks.ts";
import type { Approvals } from "../approval/approval.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Connection } from "../mcp/connection.ts";
import type { CallToolResult } from "../mcp/wire/wire.ts";
import type { Redactor, Secrets } from "../secrets/redact.ts";
import type { AttemptContext } from "./attempt.ts";
import { type AskedOfServer, callServer, isExcluded, orAgain } from "./call.ts";
import { heldBackError } from "./errors.ts";
import { ServerLife } from "./life.ts";
import type { KnownTools } from "./offer.ts";
import { createParts, type ServerParts, type ServerTimings } from "./parts.ts";
import type { ServerLimits } from "./policy.ts";
import type { ServerPhase, WantedBy } from "./state.ts";
import { serverStatus } from "./status.ts";

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
  readonly #life: ServerLife;
  #definition: ServerDefinition;

  constructor(definition: ServerDefinition, context: ServerContext) {
    this.#definition = definition;
    this.#context = context;
    this.#limits = context.limits ?? LIMITS;
    this.#parts = createParts({
      definition: () => this.#definition,
      lifetime: this.#lifetime.signal,
      log: context.log,
      isOpen: (connection) => this.#life.connection === connection,
      onLate: () => {
        if (this.#life.connected) context.onTools(this);
      },
    });
    const living = {
      parts: this.#parts,
      limits: this.#limits,
      onStatus: () => context.onStatus(this),
      onTools: () => context.onTools(this),
    };
    this.#life = new ServerLife(living, context);
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
  /** Those that `redact` takes out. */
  get secrets(): Secrets {
    return this.#parts.secrets.known;
  }

  get redact(): Redactor {
    return this.#parts.redact;
  }

  get phase(): ServerPhase["name"] {
    return this.#life.phase.name;
  }

  /** Milliseconds since the epoch; undefined if the server is not connected. */
  get connectedAt(): number | undefined {
    const { phase } = this.#life;
    return phase.name === "connected" ? Math.round(performance.timeOrigin + phase.sinceMs) : undefined;
  }

  /** Whether ToolSearch has reason to wait for this server. */
  get learning(): boolean {
    return !this.#parts.offer.isOwn && this.#life.phase.name === "connecting";
  }

  /** Takes what a valid cache entry says of the server. */
  restore(known: KnownTools): void {
    this.#parts.offer.restore(known);
    this.#context.onStatus(this);
  }

  /** Leaves it to a call or the user to connect the server. `why`: a sentence without its full stop. */
  holdBack(why: string): void {
    this.#life.dispatch({ type: "held-back", error: heldBackError(this.name, why) });
  }

  /** Shows the tools of the server that this one replaces until this one has listed its own. */
  inherit(old: Server): void {
    this.#parts.offer.inherit(old.#parts.offer);
  }

  /** Takes a definition that differs in nothing that a connection depends on. */
  update(definition: ServerDefinition): void {
    this.#definition = definition;
    const { connection, watch } = this.#life;
    if (connection) watch.start(connection);
    this.#context.onStatus(this);
    if (!definition.enabled || !definition.exposeResources || this.resources) return;
    // The resources are wanted from now on.
    if (this.#life.connection) void watch.relist();
    else this.connect("background").catch(() => undefined);
  }

  status(): ServerStatus {
    return serverStatus({
      definition: this.#definition,
      phase: this.#life.phase,
      waits: this.#life.waits,
      connection: this.#life.connection,
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
    return this.#life.connect(by);
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
      relist: () => this.#life.watch.relist(),
      approvals: this.#context.approvals,
    };
    return this.#life.watch.during(() => callServer(server, asked));
  }

  /** Connects if needed, then runs the task. Throws `ThreadsError`, or what the task throws. */
  use<T>(task: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#life.watch.during(async () => {
      const connection = await this.connect("call");
      const ready = { connection, send: () => task(connection) };
      return await orAgain({ distrust: this.#distrust }, ready, async () => task(await this.connect("call")));
    });
  }

  /** Gives up a connection that relied on what is remembered. */
  readonly #distrust = (connection: Connection, isWrong: boolean): void => {
    this.#parts.offer.distrust(isWrong);
    if (this.#life.connected === connection) this.#life.dispatch({ type: "renewed" });
  };

  /** Runs the task if the server is connected. */
  ifConnected<T>(task: (connection: Connection) => Promise<T>): Promise<T> | undefined {
    const { connected, watch } = this.#life;
    return connected && watch.during(() => task(connected));
  }

  /** Makes a new connection for the user, whatever the state. Rejects with `ThreadsError`. */
  async reconnect(): Promise<void> {
    if (this.#life.phase.name === "connected") this.#life.dispatch({ type: "renewed" });
    await this.connect("user");
  }

  /** For a server that is replaced: settles when no call is open, or after `maxMs`. */
  drain(maxMs: number): Promise<void> {
    return this.#life.watch.unused(maxMs);
  }

  /** Ends the connection and any attempt. Settles when nothing of this server runs. */
  async close(): Promise<void> {
    this.#life.watch.close();
    this.#life.dispatch({ type: "closed" });
    this.#lifetime.abort();
    await this.#life.ended();
    this.#parts.log.close();
  }
}
