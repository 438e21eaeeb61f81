/**
 * All servers of one session. Starts each on its own, so that none waits for another, and tells when the
 * tools of all are known.
 */
import { ThreadsError } from "../../src/protocol/errors.ts";
import type { CachedTool } from "../cache/metadata-cache.ts";
import type { ServerDefinition } from "./config/definition.ts";
import { createGate } from "./gate.ts";
import { Server, type ServerContext, shutdownTimes } from "./server.ts";

const CONNECTS_AT_A_TIME = 10;

export interface KnownTools {
  tools: CachedTool[];
  instructions?: string;
}

export interface Supervisor {
  servers: readonly Server[];
  /** Gives servers the tools that the cache knows, and connects the others once to learn theirs. */
  start(known: Record<string, KnownTools>): void;
  /** Throws `unknown_server`. */
  get(name: string): Server;
  /** Names of servers whose tools are still being learned when `timeoutMs` is over, or at once if none. */
  settleTools(timeoutMs: number, signal: AbortSignal): Promise<string[]>;
  close(): Promise<void>;
}

export function createSupervisor(
  definitions: readonly ServerDefinition[],
  context: Omit<ServerContext, "gate">,
): Supervisor {
  const gate = createGate(CONNECTS_AT_A_TIME);
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

  const learning = (): string[] => servers.filter((server) => server.learning).map((server) => server.name);

  return {
    servers,
    start: (known) => {
      for (const server of servers) {
        const entry = Object.hasOwn(known, server.name) ? known[server.name] : undefined;
        if (entry) server.restore(entry.tools, entry.instructions);
        // A failure is in its status and in the log.
        else if (server.definition.enabled) server.connect().catch(() => undefined);
      }
    },
    get: (name) => {
      const server = byName.get(name);
      if (server) return server;
      throw new ThreadsError("unknown_server", `No server named ${name} is configured.`, {
        remedy: "/mcp lists the servers.",
        data: { known: [...byName.keys()] },
      });
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
    close: async () => {
      await Promise.all(servers.map((server) => server.close(shutdownTimes)));
    },
  };
}
