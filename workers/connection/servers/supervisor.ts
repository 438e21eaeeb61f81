/**
 * All servers of one session. Carries plans out, each server on its own, so that none waits for another,
 * and tells when the tools of all are known.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { createGate } from "../../shared/pace/gate.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Plan } from "../config/plan/plan.ts";
import { notTrusted } from "./errors.ts";
import type { KnownTools } from "./offer.ts";
import { Server, type ServerContext } from "./server.ts";

export interface Supervisor {
  /** In the order of the configuration. */
  readonly servers: readonly Server[];
  /**
   * Makes the servers what the plan says; nothing connects before `learn`. `withheld`: servers of the project
   * that may not run, with the reason.
   */
  carryOut(change: Plan, withheld?: ReadonlyMap<string, string>): void;
  /**
   * Gives servers that the last plan started the tools that the cache knows; connects those that are to be
   * up, and once each server whose tools are not known, to learn them.
   */
  learn(known: Record<string, KnownTools>): void;
  /** Throws `server_not_trusted`, `server_removed` or `unknown_server`. */
  get(name: string): Server;
  /** Every name that `get` has more to say of than that it is unknown. */
  readonly names: readonly string[];
  /** Names of servers whose tools are still being learned when `timeoutMs` is over, or at once if none. */
  settleTools(wanted: { timeoutMs: number; servers?: string[] }, signal: AbortSignal): Promise<string[]>;
  /** Connects what should be up and is not: eager servers that were dropped. */
  revive(): void;
  /** Connects the named server, or all, anew. Settles when each has connected or failed. */
  reconnect(name: string | undefined): Promise<void>;
  close(): Promise<void>;
}

/** In the background: a failure is in the server's state and in the log. */
const connectQuietly = (server: Server): void => {
  server.connect("background").catch(() => undefined);
};

export interface SupervisorContext extends Omit<ServerContext, "gate"> {
  /** Servers that the first plan does not connect by itself -> why, in a sentence without its end. */
  heldBack?: ReadonlyMap<string, string>;
}

export function createSupervisor(context: SupervisorContext): Supervisor {
  const gate = createGate(LIMITS.connectsAtATime);
  const listeners = new Set<() => void>();
  const removed = new Set<string>();
  /** Once for each: whoever edits the server's definition wants it to be tried. */
  const heldBack = new Map(context.heldBack);
  let withheld: ReadonlyMap<string, string> = new Map();
  /** Servers that were replaced or removed, until they are closed. */
  const leaving = new Set<Promise<void>>();
  let servers = new Map<string, Server>();
  let started: Server[] = [];

  const create = (definition: ServerDefinition): Server => {
    const server: Server = new Server(definition, {
      ...context,
      gate,
      onStatus: () => {
        // A server that has left says nothing any more.
        if (servers.get(definition.name) !== server) return;
        context.onStatus(server);
        for (const listener of listeners) listener();
      },
      onTools: () => {
        if (servers.get(definition.name) === server) context.onTools(server);
      },
    });
    started.push(server);
    return server;
  };

  const leave = (server: Server | undefined): void => {
    if (!server) return;
    const left = server.drain(LIMITS.drainMs).then(() => server.close());
    leaving.add(left);
    left.finally(() => leaving.delete(left));
  };

  const get = (name: string): Server => {
    const server = servers.get(name);
    if (server) return server;
    const reason = withheld.get(name);
    if (reason !== undefined) throw notTrusted(name, reason);
    const known = [...servers.keys()];
    if (removed.has(name)) {
      throw new ThreadsError("server_removed", `The server ${name} was removed from the configuration.`, {
        remedy: "Search again with ToolSearch.",
        data: { server: name, known },
      });
    }
    throw new ThreadsError("unknown_server", `No server named ${name} is configured.`, {
      remedy: "/mcp lists the servers.",
      data: { known },
    });
  };
  const learning = (only: string[] | undefined): string[] =>
    [...servers.values()]
      .filter((server) => server.learning && (only === undefined || only.includes(server.name)))
      .map(({ name }) => name);

  return {
    get servers() {
      return [...servers.values()];
    },
    get,
    get names() {
      return [...new Set([...servers.keys(), ...withheld.keys(), ...removed])];
    },
    carryOut: (change, notAllowed = new Map()) => {
      withheld = notAllowed;
      const before = servers;
      started = [];
      servers = new Map();
      for (const step of change.servers) {
        const old = before.get(step.name);
        if (step.action === "stop") {
          removed.add(step.name);
          leave(old);
          continue;
        }
        removed.delete(step.name);
        if (old && (step.action === "update" || step.action === "keep")) {
          servers.set(step.name, old);
          old.update(step.after);
          continue;
        }
        const server = create(step.after);
        servers.set(step.name, server);
        if (old) server.inherit(old);
        leave(old);
      }
    },
    learn: (known) => {
      for (const server of started) {
        if (servers.get(server.name) !== server) continue;
        const entry = Object.hasOwn(known, server.name) ? known[server.name] : undefined;
        if (entry) server.restore(entry);
        if (!server.definition.enabled) continue;
        const why = heldBack.get(server.name);
        heldBack.delete(server.name);
        if (why !== undefined) server.holdBack(why);
        if (!entry || server.definition.lifecycle !== "lazy") connectQuietly(server);
      }
    },
    settleTools: ({ timeoutMs, servers: only }, signal) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          listeners.delete(check);
          signal.removeEventListener("abort", done);
          resolve(learning(only));
        };
        const check = (): void => {
          if (learning(only).length === 0) done();
        };
        const timer = setTimeout(done, timeoutMs);
        listeners.add(check);
        signal.addEventListener("abort", done);
        check();
      }),
    revive: () => {
      for (const server of servers.values()) {
        if (server.definition.lifecycle === "eager" && server.phase === "idle") connectQuietly(server);
      }
    },
    reconnect: async (name) => {
      const all = [...servers.values()].filter((server) => server.definition.enabled);
      const wanted = name === undefined ? all : [get(name)];
      const outcomes = await Promise.allSettled(wanted.map((server) => server.reconnect()));
      // A failure is in the server's state; a refusal is the only answer that the user gets.
      const [outcome] = outcomes;
      if (name !== undefined && outcome?.status === "rejected" && !get(name).definition.enabled)
        throw outcome.reason;
    },
    close: async () => {
      const open = [...servers.values()].map((server) => server.close());
      await Promise.all([...open, ...leaving]);
    },
  };
}
