/**
 * All servers of one session. Carries plans out, each server on its own, so that no server waits for another, and
 * answers when the tools of all are known. reconcile.ts decides what a plan means, lookup.ts what a name means, and
 * settle.ts waits. Called by: session.
 */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { TriedServer } from "../../../src/shared/protocol/setup.ts";
import { createGate } from "../../shared/pace/pace.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Plan } from "../config/plan/plan.ts";
import { noServer } from "./lookup.ts";
import type { KnownTools } from "./offer.ts";
import { reconcile } from "./reconcile.ts";
import { Server, type ServerContext } from "./server.ts";
import { createSettling } from "./settle.ts";
import { tryServer } from "./trial.ts";

export interface Supervisor {
  /** In the order of the configuration. */
  readonly servers: readonly Server[];
  /**
   * Makes the servers what the plan says; nothing connects before `restoreAndConnect`. `withheld`: servers of the
   * project that may not run, each with the reason.
   */
  carryOut(change: Plan, withheld?: ReadonlyMap<string, string>): void;
  /**
   * Gives the servers that the last plan started the tools that the cache knows; connects the servers that are to be
   * up, and once each server whose tools are unknown, to learn them.
   */
  restoreAndConnect(known: Record<string, KnownTools>): void;
  /** Throws `server_not_trusted`, `server_removed` or `unknown_server`. */
  get(name: string): Server;
  /** Names for which `get` answers, or throws something more precise than `unknown_server`. */
  readonly names: readonly string[];
  /** Answers which servers still learn their tools after `timeoutMs`, or at once if none does. */
  settleTools(wanted: { timeoutMs: number; servers?: string[] }, signal: AbortSignal): Promise<string[]>;
  /** Connects eager servers that were dropped, and those to which someone has signed in elsewhere. */
  reconnectDropped(): Promise<void>;
  /** Makes a new connection to the named server, or to all. Settles when each has connected or failed. */
  reconnect(name: string | undefined): Promise<void>;
  /** Tries a server that is not one of these, and ends it. Rejects with `cancelled`, also at the end of the session. */
  tryServer(definition: ServerDefinition, signal: AbortSignal): Promise<TriedServer>;
  close(): Promise<void>;
}

export interface SupervisorContext extends Omit<ServerContext, "gate"> {
  /** No server is connected by itself: each waits for a request. */
  onDemand?: boolean | undefined;
  /** Servers that the first plan does not connect by itself -> the reason, a sentence without its full stop. */
  heldBack?: ReadonlyMap<string, string>;
}

export const createSupervisor = (context: SupervisorContext): Supervisor => new RunningServers(context);

/** Connects in the background: a failure is in the server's state and in the log. */
const connectQuietly = (server: Server): void => {
  server.connect("background").catch(() => undefined);
};

class RunningServers implements Supervisor {
  readonly #context: SupervisorContext;
  readonly #gate = createGate(LIMITS.connectsAtATime);
  readonly #settling = createSettling();
  readonly #removed = new Set<string>();
  /** Each counts once: a person who edits the server's definition wants the server to be tried. */
  readonly #heldBack: Map<string, string>;
  #withheld: ReadonlyMap<string, string> = new Map();
  /** The ends of servers that were replaced, removed or tried. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #servers = new Map<string, Server>();
  /** Servers that the last plan created. */
  #created: Server[] = [];

  constructor(context: SupervisorContext) {
    this.#context = context;
    this.#heldBack = new Map(context.heldBack);
  }

  get servers(): Server[] {
    return [...this.#servers.values()];
  }

  get names(): string[] {
    return [...new Set([...this.#servers.keys(), ...this.#withheld.keys(), ...this.#removed])];
  }

  get(name: string): Server {
    const server = this.#servers.get(name);
    if (server) return server;
    const known = [...this.#servers.keys()];
    throw noServer(name, { known, withheld: this.#withheld, removed: this.#removed });
  }

  carryOut(change: Plan, withheld: ReadonlyMap<string, string> = new Map()): void {
    this.#withheld = withheld;
    const before = this.#servers;
    this.#created = [];
    this.#servers = new Map();
    for (const step of reconcile(new Set(before.keys()), change)) {
      const old = before.get(step.name);
      if (step.action === "remove") {
        this.#removed.add(step.name);
        this.#leave(old);
        continue;
      }
      this.#removed.delete(step.name);
      if (step.action === "keep" && old) {
        this.#servers.set(step.name, old);
        old.update(step.definition);
        continue;
      }
      const server = this.#create(step.definition);
      this.#servers.set(step.name, server);
      if (old) server.inherit(old);
      this.#leave(old);
    }
  }

  restoreAndConnect(known: Record<string, KnownTools>): void {
    for (const server of this.#created) {
      if (!this.#isCurrent(server)) continue;
      const entry = Object.hasOwn(known, server.name) ? known[server.name] : undefined;
      if (entry) server.restore(entry);
      if (!server.definition.enabled) continue;
      const why = this.#heldBack.get(server.name);
      this.#heldBack.delete(server.name);
      if (why !== undefined) server.holdBack(why);
      if (this.#context.onDemand) continue;
      if (!entry || server.definition.lifecycle !== "lazy") connectQuietly(server);
    }
  }

  settleTools(
    { timeoutMs, servers: only }: { timeoutMs: number; servers?: string[] },
    signal: AbortSignal,
  ): Promise<string[]> {
    const learning = (): string[] =>
      this.servers
        .filter((server) => server.learning && (only === undefined || only.includes(server.name)))
        .map(({ name }) => name);
    return this.#settling.wait(learning, timeoutMs, signal);
  }

  async reconnectDropped(): Promise<void> {
    for (const server of this.#servers.values()) {
      const { lifecycle } = server.definition;
      if (lifecycle === "eager" && server.phase === "idle") connectQuietly(server);
      if (lifecycle === "lazy" || server.phase !== "needs-auth") continue;
      if (await this.#context.auth?.hasOther(server.name)) connectQuietly(server);
    }
  }

  async reconnect(name: string | undefined): Promise<void> {
    const enabled = this.servers.filter((server) => server.definition.enabled);
    const wanted = name === undefined ? enabled : [this.get(name)];
    const outcomes = await Promise.allSettled(wanted.map((server) => server.reconnect()));
    // A failure is in the server's state; a refusal is the only answer that the user gets.
    const [outcome] = outcomes;
    if (name !== undefined && outcome?.status === "rejected" && !this.get(name).definition.enabled)
      throw outcome.reason;
  }

  tryServer(definition: ServerDefinition, signal: AbortSignal): Promise<TriedServer> {
    const trial = tryServer(definition, this.#context, AbortSignal.any([signal, this.#closing.signal]));
    const ended = trial.then(
      () => undefined,
      () => undefined,
    );
    this.#leaving.add(ended);
    ended.finally(() => this.#leaving.delete(ended));
    return trial;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const open = this.servers.map((server) => server.close());
    await Promise.all([...open, ...this.#leaving]);
  }

  #create(definition: ServerDefinition): Server {
    const server = new Server(definition, {
      ...this.#context,
      gate: this.#gate,
      // A server that was replaced or removed reports nothing any more.
      onStatus: (one) => {
        if (!this.#isCurrent(one)) return;
        this.#context.onStatus(one);
        this.#settling.look();
      },
      onTools: (one) => {
        if (this.#isCurrent(one)) this.#context.onTools(one);
      },
    });
    this.#created.push(server);
    return server;
  }

  #isCurrent(server: Server): boolean {
    return this.#servers.get(server.name) === server;
  }

  #leave(server: Server | undefined): void {
    if (!server) return;
    const left = server.drain(LIMITS.drainMs).then(() => server.close());
    this.#leaving.add(left);
    left.finally(() => this.#leaving.delete(left));
  }
}
