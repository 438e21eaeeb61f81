/**
 * One configured server: its state, its connection, its tools. Connects when it is needed; concurrent
 * users share one attempt; a failure stays with this server. Called by the supervisor only.
 */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { ThreadsError, toWireError } from "../../src/protocol/errors.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { ServerState, ServerStatus, WorkerEvent } from "../../src/protocol/types.ts";
import type { CachedTool } from "../cache/metadata-cache.ts";
import type { CallRequest, Connection } from "./client.ts";
import { type ServerDefinition, transportOf } from "./config/definition.ts";
import { connect } from "./connect.ts";
import type { Log } from "./log.ts";
import type { CloseTimes } from "./transports/stdio.ts";

export interface ServerContext {
  cwd: string;
  npxCacheFile: string;
  log: Log;
  emit: (event: WorkerEvent) => void;
  /** Lets at most so many servers connect at a time. */
  gate: <T>(task: () => Promise<T>) => Promise<T>;
  onStatus: (server: Server) => void;
  /** The server listed its tools. */
  onTools: (server: Server) => void;
}

export class Server {
  readonly definition: ServerDefinition;
  readonly #context: ServerContext;
  readonly #lifetime = new AbortController();
  #state: ServerState;
  #error: ThreadsError | undefined;
  #connection: Connection | undefined;
  #attempt: Promise<Connection> | undefined;
  #tools: CachedTool[] | undefined;
  #instructions: string | undefined;

  constructor(definition: ServerDefinition, context: ServerContext) {
    this.definition = definition;
    this.#context = context;
    this.#state = definition.enabled ? "idle" : "disabled";
  }

  get name(): string {
    return this.definition.name;
  }

  /** Undefined until a list came from the server or the cache. */
  get tools(): CachedTool[] | undefined {
    return this.#tools;
  }

  get instructions(): string | undefined {
    return this.#instructions;
  }

  /** Whether ToolSearch has reason to wait for this server. */
  get learning(): boolean {
    return this.#tools === undefined && this.#state === "connecting";
  }

  /** Takes the tools of a valid cache entry. */
  restore(tools: CachedTool[], instructions: string | undefined): void {
    this.#tools = tools;
    this.#instructions = instructions;
    this.#context.onStatus(this);
  }

  status(): ServerStatus {
    const pid = this.#connection?.pid;
    return {
      name: this.name,
      state: this.#state,
      transport: this.#connection?.transport ?? transportOf(this.definition),
      source: this.definition.file,
      toolCount: this.#tools?.length ?? 0,
      toolsKnown: this.#tools !== undefined,
      ...(this.#error ? { error: toWireError(this.#error) } : {}),
      ...(pid === undefined ? {} : { pid }),
    };
  }

  /** The open connection, or one attempt that all callers share. Rejects with `ThreadsError`. */
  connect(): Promise<Connection> {
    if (this.#state === "disabled") return Promise.reject(this.#disabled());
    if (this.#lifetime.signal.aborted) return Promise.reject(this.#removed());
    if (this.#connection) return Promise.resolve(this.#connection);
    this.#attempt ??= this.#open().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #open(): Promise<Connection> {
    this.#enter("connecting");
    try {
      return await this.#context.gate(() => this.#openNow());
    } catch (error) {
      const failure =
        error instanceof ThreadsError ? error : new ThreadsError("internal", String(error), { cause: error });
      this.#error = failure;
      this.#enter(failure.code === "needs_auth" ? "needs-auth" : "failed");
      this.#context.log.error(`${this.name}: ${failure.message}`);
      throw failure;
    }
  }

  async #openNow(): Promise<Connection> {
    const { log, emit, cwd, npxCacheFile } = this.#context;
    const startedAt = performance.now();
    let closed = false;
    const connection = await connect({
      definition: this.definition,
      cwd,
      npxCacheFile,
      signal: this.#lifetime.signal,
      onSpawn: (pid) => emit({ type: "spawned", pid, server: this.name }),
      onExit: (pid) => emit({ type: "exited", pid, server: this.name }),
      onNote: (note) => log.info(`${this.name} ${note}`),
      onClosed: () => {
        closed = true;
        this.#onClosed();
      },
    });
    this.#connection = connection;
    try {
      const tools = await connection.listTools(this.#lifetime.signal);
      if (closed) throw this.#removed();
      this.#accept(tools, connection);
    } catch (error) {
      this.#connection = undefined;
      await connection.close(shutdownTimes);
      if (error instanceof ThreadsError) throw error;
      throw new ThreadsError(
        "connect_failed",
        `${this.name} did not list its tools: ${(error as Error).message}.`,
        {
          remedy: "Its log is in mcp-threads.log.",
          data: { server: this.name },
        },
      );
    }
    const tookMs = Math.round(performance.now() - startedAt);
    const via = `${connection.transport}${connection.pid === undefined ? "" : `, pid ${connection.pid}`}`;
    log.info(`${this.name} connected over ${via} in ${tookMs} ms, ${this.#tools?.length ?? 0} tools`);
    return connection;
  }

  #accept(tools: CachedTool[], connection: Connection): void {
    this.#tools = tools;
    this.#instructions = connection.instructions;
    this.#error = undefined;
    this.#enter("connected");
    this.#context.onTools(this);
  }

  #onClosed(): void {
    this.#connection = undefined;
    if (this.#state !== "connected") return;
    this.#enter("idle");
    this.#context.log.warn(`${this.name} closed its connection; the next call connects again`);
  }

  #enter(state: ServerState): void {
    this.#state = state;
    this.#context.onStatus(this);
  }

  #disabled(): ThreadsError {
    return new ThreadsError("server_disabled", `${this.name} is disabled in ${this.definition.file}.`, {
      remedy: 'Set "enabled": true for it there.',
      data: { server: this.name },
    });
  }

  #removed(): ThreadsError {
    return new ThreadsError("server_died", `${this.name} is being closed.`, { data: { server: this.name } });
  }

  /** Connects where needed, then calls. Never repeats a call: it may have run. */
  async callTool(request: Omit<CallRequest, "timeoutMs">): Promise<CallToolResult> {
    const connection = await this.connect();
    this.#requireTool(request.tool);
    const timeoutMs = this.definition.requestTimeoutMs ?? LIMITS.requestTimeoutMs;
    return connection.callTool({ ...request, timeoutMs });
  }

  #requireTool(tool: string): void {
    const known = this.#tools ?? [];
    if (known.some(({ name }) => name === tool)) return;
    throw new ThreadsError("unknown_tool", `${this.name} no longer offers a tool named ${tool}.`, {
      remedy: "Search again with ToolSearch.",
      data: { server: this.name, known: known.slice(0, 20).map(({ name }) => name) },
    });
  }

  /** Ends the connection and any attempt. Settles when nothing of this server runs. */
  async close(times: CloseTimes): Promise<void> {
    const connection = this.#connection;
    if (this.#state === "connected") this.#enter("closing");
    this.#lifetime.abort();
    await connection?.close(times);
    // The attempt's failure is its callers' business; here it only has to be over.
    await this.#attempt?.catch(() => undefined);
  }
}

export const shutdownTimes: CloseTimes = { termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs };
