/**
 * All servers of one session. Starts each on its own, so that none waits for another, and tells when the
 * tools of all are known.
 */
import { ThreadsError } from "../../src/protocol/errors.ts";
import { LIMITS } from "../../src/protocol/limits.ts";
import type { CachedTool } from "../cache/tool.ts";
import type { ServerDefinition } from "./config/definition.ts";
import { createGate } from "./gate.ts";
import { Server, type ServerContext } from "./server.ts";

export interface KnownTools {
  tools: CachedTool[];
  instructions?: string;
}

export interface Supervisor {
  servers: readonly Server[];
  /**
   * Gives servers the tools that the cache knows; connects those that are to be up, and once each server
   * whose tools are not known, to learn them.
   */
  start(known: Record<string, KnownTools>): void;
  /** Throws `unknown_server`. */
  get(name: string): Server;
  /** Names of servers whose tools are still being learned when `timeoutMs` is over, or at once if none. */
  settleTools(timeoutMs: number, signal: AbortSignal): Promise<string[]>;
  /** Connects what should be up and is not: eager servers that were dropped. */
  revive(): void;
  /** Connects the named server, or all that are not connected. Settles when each has connected or failed. */
  reconnect(name: string | undefined): Promise<void>;
  close(): Promise<void>;
}

/** In the background: a failure is in the server's state and in the log. */
const connectQuietly = (server: Server): void => {
  server.connect("background").catch(() => undefined);
};

export function createSupervisor(
  definitions: readonly ServerDefinition[],
  context: Omit<ServerContext, "gate">,
): Supervisor {
  const gate = createGate(LIMITS.connectsAtATime);
  const listeners = new Set<() => void>();
  const servers = definitions.map(
    (definition) =>
      new Server(definition, {
        ...context,
        gate,
        onStatus: (server) => {
          context.onStatus(server);
          for (const listener of listeners) listener();
        },
      }),
  );
  const byName = new Map(servers.map((server) => [server.name, server]));
  const get = (name: string): Server => {
    const server = byName.get(name);
    if (server) return server;
    throw new ThreadsError("unknown_server", `No server named ${name} is configured.`, {
      remedy: "/mcp lists the servers.",
      data: { known: [...byName.keys()] },
    });
  };
  const learning = (): string[] => servers.filter((server) => server.learning).map((server) => server.name);

  return {
    servers,
    get,
    start: (known) => {
      for (const server of servers) {
        const entry = Object.hasOwn(known, server.name) ? known[server.name] : undefined;
        if (entry) server.restore(entry.tools, entry.instructions);
        if (!server.definition.enabled) continue;
        if (!entry || server.definition.lifecycle !== "lazy") connectQuietly(server);
      }
    },
    settleTools: (timeoutMs, signal) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          listeners.delete(check);
          signal.removeEventListener("abort", done);
          resolve(learning());
        };
        const check = (): void => {
          if (learning().length === 0) done();
        };
        const timer = setTimeout(done, timeoutMs);
        listeners.add(check);
        signal.addEventListener("abort", done);
        check();
      }),
    revive: () => {
      for (const server of servers) {
        if (server.definition.lifecycle === "eager" && server.phase === "idle") connectQuietly(server);
      }
    },
    reconnect: async (name) => {
      const wanted = name === undefined ? servers.filter((server) => server.definition.enabled) : [get(name)];
      await Promise.allSettled(wanted.map((server) => server.reconnect()));
    },
    close: async () => {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}
