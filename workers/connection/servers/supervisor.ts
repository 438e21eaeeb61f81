/**
 * All servers of one session. Carries plans out, each server on its own, so that no server waits for another, and
 * answers when the tools of all are known. Tries also a server that is not configured.
 */
import { ThreadsError, toWireError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { TriedServer } from "../../../src/shared/protocol/person.ts";
import { shownName } from "../../../src/shared/text/unprintable.ts";
import { createGate } from "../../shared/pace/pace.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import { LIFECYCLES } from "../config/entry/server-keys.ts";
import type { Plan } from "../config/plan/plan.ts";
import { type KnownTools, listsNothing } from "./lists.ts";
import { ProcessEnds } from "./process-ends.ts";
import { Server, type ServerContext } from "./server.ts";
import { connectsShared, type Lifecycle } from "./state.ts";
import { noServer, takenBackError, type Withheld } from "./status.ts";

/** Whether the person has not taken back the permission by which the server runs. */
type MayRun = (definition: ServerDefinition) => boolean;

export interface SupervisorContext extends Omit<ServerContext, "gate" | "ends" | "takenBack"> {
  /** No server is connected by itself: each waits for a request. */
  onDemand?: boolean | undefined;
  /** Servers that the first plan does not connect by itself -> the reason, a sentence without its full stop. */
  heldBack?: ReadonlyMap<string, string>;
}

/** Connects in the background: a failure is in the server's state and in the log. */
const connectQuietly = (server: Server): void => {
  server.connect("background").catch(() => undefined);
};

const isRaised = (before: Lifecycle, after: Lifecycle): boolean =>
  LIFECYCLES.indexOf(after) > LIFECYCLES.indexOf(before);

export class Supervisor {
  readonly #context: SupervisorContext;
  readonly #gate = createGate(LIMITS.connectsAtATime);
  readonly #ends = new ProcessEnds();
  /** Requests that wait for tools: each looks again when a server's state changes, or a plan has been carried out. */
  readonly #waiting = new Set<() => void>();
  /** By an edit in this session; some of them may be there again. */
  readonly #removed = new Set<string>();
  /** Each counts once: a person who edits the server's definition wants the server to be tried. */
  readonly #heldBack: Map<string, string>;
  #withheld: Withheld = new Map();
  /** As the last plan has it, which is asked anew each time. */
  #mayRun: MayRun = () => true;
  /** The ends of servers that were replaced, removed or tried. */
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #servers = new Map<string, Server>();
  /** Servers that the last plan created. */
  #created: Server[] = [];

  constructor(context: SupervisorContext) {
    this.#context = context;
    this.#heldBack = new Map(context.heldBack);
  }

  /** In the order of the configuration. */
  get servers(): readonly Server[] {
    return [...this.#servers.values()];
  }

  /** Whether a server is to be connected that may run already, for another session. */
  get connectsShared(): boolean {
    return this.servers.some(connectsShared);
  }

  /** Names for which `get` answers, or throws something more precise than `unknown_server`. */
  get names(): readonly string[] {
    return [...new Set([...this.#servers.keys(), ...this.#withheld.keys(), ...this.#removed])];
  }

  /** Throws `server_not_trusted`, `server_removed` or `unknown_server`. */
  get(name: string): Server {
    const server = this.#servers.get(name);
    if (server) return server;
    const known = [...this.#servers.keys()];
    throw noServer(name, known, { withheld: this.#withheld, removed: this.#removed });
  }

  /**
   * Makes the servers what the plan says; no new one connects before `restoreAndConnect`. `withheld`: servers of the
   * project that may not run, each with the reason. `mayRun`: false from when the person takes a permission back.
   */
  carryOut(
    { servers }: Pick<Plan, "servers">,
    withheld: Withheld = new Map(),
    mayRun: MayRun = this.#mayRun,
  ): void {
    this.#withheld = withheld;
    this.#mayRun = mayRun;
    const before = this.#servers;
    this.#created = [];
    this.#servers = new Map();
    for (const change of servers) {
      const { name } = change;
      const old = before.get(name);
      if (change.action === "stop") {
        this.#removed.add(name);
        this.#end(old);
        continue;
      }
      if (old && (change.action === "update" || change.action === "keep")) {
        this.#servers.set(name, old);
        const { lifecycle } = old.definition;
        old.update(change.after);
        // A person wants it to be up from now on, so no pause after a failure counts.
        if (isRaised(lifecycle, change.after.lifecycle) && !this.#context.onDemand)
          old.connect("user").catch(() => undefined);
        continue;
      }
      const server = this.#create(change.after);
      this.#servers.set(name, server);
      if (old) server.inherit(old);
      this.#end(old);
    }
  }

  /**
   * Gives the servers that the last plan started the tools that the cache knows; connects the servers that are to be
   * up, and once each server whose tools are unknown, or that listed nothing, to learn them.
   */
  restoreAndConnect(known: Record<string, KnownTools>): void {
    for (const server of this.#created) {
      if (!this.#isCurrent(server)) continue;
      const entry = Object.hasOwn(known, server.name) ? known[server.name] : undefined;
      if (entry) server.restore(entry);
      if (!server.definition.enabled || !this.#mayRun(server.definition)) continue;
      const why = this.#heldBack.get(server.name);
      this.#heldBack.delete(server.name);
      if (why !== undefined) server.holdBack(why);
      if (this.#context.onDemand) continue;
      if (!entry || listsNothing(server) || server.definition.lifecycle !== "lazy") connectQuietly(server);
    }
  }

  /**
   * Answers which servers still learn their tools: once there are none, after `timeoutMs`, or when the signal fires,
   * whichever comes first.
   */
  settleTools(
    { timeoutMs, servers: only }: { timeoutMs: number; servers?: string[] },
    signal: AbortSignal,
  ): Promise<string[]> {
    const learning = (): string[] =>
      this.servers
        .filter((server) => server.learning && (only === undefined || only.includes(server.name)))
        .map(({ name }) => name);
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        signal.removeEventListener("abort", done);
        resolve(learning());
      };
      const look = (): void => {
        if (learning().length === 0) done();
      };
      const timer = setTimeout(done, timeoutMs);
      this.#waiting.add(look);
      signal.addEventListener("abort", done);
      if (signal.aborted) done();
      else look();
    });
  }

  /** A plan has been carried out: a server that a request waits for may be gone, or switched off. */
  lookAgain(): void {
    for (const look of this.#waiting) look();
  }

  /**
   * Connects eager servers that were dropped or have failed, servers that have failed and whose tools nobody knows, and those
   * to which someone has signed in elsewhere, but no lazy one whose tools are known.
   */
  async reconnectDropped(): Promise<void> {
    for (const server of this.#servers.values()) {
      const { phase, definition } = server;
      const isEager = definition.lifecycle === "eager";
      if (phase === "idle" && isEager) connectQuietly(server);
      if (phase === "failed" && (isEager || listsNothing(server))) connectQuietly(server);
    }
    await this.connectSignedIn();
  }

  /**
   * Connects those of the named servers, or of all, to which someone has signed in elsewhere. A lazy one whose tools are known has
   * its calls to find out.
   */
  async connectSignedIn(only?: readonly string[]): Promise<void> {
    for (const server of this.servers) {
      const { name, phase, definition } = server;
      if (phase !== "needs-auth" || (only && !only.includes(name))) continue;
      if (definition.lifecycle === "lazy" && !listsNothing(server)) continue;
      if (await this.#context.auth?.hasOther(name)) connectQuietly(server);
    }
  }

  /** Makes a new connection to the named server, or to all, as `Server.reconnect`. Settles when each has connected or failed. */
  async reconnect(name: string | undefined, isGentle = false): Promise<void> {
    const enabled = this.servers.filter((server) => server.definition.enabled);
    const wanted = name === undefined ? enabled : [this.get(name)];
    const outcomes = await Promise.allSettled(wanted.map((server) => server.reconnect(isGentle)));
    // A failure is in the server's state; a refusal is the only answer that the user gets.
    const [outcome] = outcomes;
    if (name === undefined || outcome?.status !== "rejected") return;
    const { definition } = this.get(name);
    if (!definition.enabled || !this.#mayRun(definition)) throw outcome.reason;
  }

  /** Tries a server that is not one of these, and ends it. Rejects with `cancelled`, also at the end of the session. */
  tryServer(definition: ServerDefinition, signal: AbortSignal): Promise<TriedServer> {
    const trial = tryServer(definition, this.#context, AbortSignal.any([signal, this.#closing.signal]));
    this.#awaitAtEnd(trial);
    return trial;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const open = this.servers.map((server) => server.close("keep"));
    await Promise.all([...open, ...this.#ending]);
  }

  #create(definition: ServerDefinition): Server {
    const server = new Server(definition, {
      ...this.#context,
      gate: this.#gate,
      ends: this.#ends,
      takenBack: (one) => (this.#mayRun(one) ? undefined : takenBackError(one.name)),
      // A server that was replaced or removed reports nothing any more.
      onStatus: (one) => {
        if (!this.#isCurrent(one)) return;
        this.#context.onStatus(one);
        this.lookAgain();
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

  /** For a server that was replaced or removed. The end of the session, which has a second, does not wait for its calls. */
  #end(server: Server | undefined): void {
    if (server) this.#awaitAtEnd(server.closeWhenIdle(LIMITS.drainMs, this.#closing.signal));
  }

  #awaitAtEnd(ending: Promise<unknown>): void {
    const ended = ending.then(
      () => undefined,
      () => undefined,
    );
    this.#ending.add(ended);
    ended.then(() => this.#ending.delete(ended));
  }
}

/** Nobody signs in and nobody is asked: no stored token goes to a server that is not configured. */
const aloneIn = (context: SupervisorContext, onStatus: ServerContext["onStatus"]): ServerContext => {
  const { auth, asks: _, ...others } = context;
  const own = auth === undefined ? {} : { auth: { ...auth, of: auth.forTrial, status: () => undefined } };
  return {
    ...others,
    ...own,
    gate: createGate(1),
    ends: new ProcessEnds(),
    onStatus,
    onTools: () => undefined,
  };
};

const tooSlow = (name: string, timeoutMs: number): ThreadsError =>
  new ThreadsError("connect_timeout", `${name} did not list its tools within ${timeoutMs / 1_000} s.`, {
    remedy:
      "Try again: a package that uvx or docker had to download is then there. Or start the program yourself.",
    data: { server: name, timeoutMs },
  });

/**
 * Tries a server that is not configured: connects as any server does, lists its tools, and ends it. Settles when the server
 * has ended. Rejects with `cancelled` if the signal fires.
 */
export async function tryServer(
  definition: ServerDefinition,
  context: SupervisorContext,
  signal: AbortSignal,
  timeoutMs: number = LIMITS.tryMs,
): Promise<TriedServer> {
  const { name } = definition;
  const startedAt = performance.now();
  const tookMs = (): number => Math.round(performance.now() - startedAt);
  const { startupTimeoutMs = timeoutMs } = definition;
  const over = new AbortController();
  const startTimer = () => setTimeout(() => over.abort(), timeoutMs);
  let timer = startTimer();
  let waits: string | undefined;
  const server = new Server(
    { ...definition, enabled: true, lifecycle: "lazy", startupTimeoutMs, shared: false },
    aloneIn(context, (tried) => {
      const now = tried.status().waits;
      if (now === waits) return;
      waits = now;
      // npm lives, or is done: what it takes to fetch a package does not count, because npm has limits of its own.
      clearTimeout(timer);
      timer = startTimer();
      context.emit({ type: "trying", server: name, ...(waits === undefined ? {} : { waits }) });
    }),
  );
  const ends = AbortSignal.any([signal, over.signal]);
  const end = (): void => void server.close();
  ends.addEventListener("abort", end, { once: true });
  try {
    ends.throwIfAborted();
    const { transport, protocol } = await server.connect("user");
    const tools = server.tools ?? [];
    return {
      outcome: "connected",
      toolCount: tools.length,
      tools: tools.slice(0, LIMITS.triedToolNames).map((tool) => shownName(tool.name)),
      transport,
      protocol: protocol.version,
      tookMs: tookMs(),
    };
  } catch (error) {
    if (signal.aborted) throw new ThreadsError("cancelled", `The trial of ${name} was cancelled.`);
    if (ends.aborted)
      return { outcome: "failed", error: toWireError(tooSlow(name, timeoutMs)), tookMs: tookMs() };
    const failure = toWireError(error);
    if (failure.data?.reason === "not-signed-in") return { outcome: "needs-sign-in", tookMs: tookMs() };
    return { outcome: "failed", error: failure, tookMs: tookMs() };
  } finally {
    clearTimeout(timer);
    ends.removeEventListener("abort", end);
    await server.close();
  }
}
