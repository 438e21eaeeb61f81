/**
 * Watches an open connection: the idle clock, the health check of a keep-alive server, and new lists when the server says
 * that they changed. Does not change the server's phase. Called by: life.ts.
 */
import { messageOf } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Log } from "../../shared/log.ts";
import { settledWithin } from "../../shared/pace/abort.ts";
import { createThrottle, type Throttle } from "../../shared/pace/throttle.ts";
import { asReason } from "../../shared/server-name.ts";
import type { Connection } from "../mcp/connection.ts";
import { createIdleClock, startHealthCheck } from "./clocks.ts";
import type { ServerParts } from "./parts.ts";
import type { ServerLimits } from "./policy.ts";
import type { LifecyclePolicy } from "./state.ts";

/** The server as its watch sees it. */
export interface WatchedServer extends Pick<ServerParts, "name" | "offer" | "redact"> {
  /** The policy that holds now: an edit may change it. */
  policy: () => LifecyclePolicy;
  readonly log: Log;
  /** The connection, if the server is connected. */
  connected(): Connection | undefined;
  /** Nothing used the connection for the idle time. */
  onIdle(): void;
  /** A ping of the open connection failed. `message`: one sentence that names the server. */
  onSick(message: string): void;
  /** The tools or resources were listed again. */
  onListed(): void;
}

/** How soon the lists are asked for again, in milliseconds. */
export type RefreshLimits = Pick<ServerLimits, "refreshIntervalMs" | "refreshLongestMs">;

export class ConnectionWatch {
  readonly #server: WatchedServer;
  readonly #idle;
  readonly #refresh: Throttle;
  #stopHealthCheck: () => void = () => undefined;

  constructor(server: WatchedServer, limits: RefreshLimits) {
    this.#server = server;
    this.#refresh = createThrottle({
      delayMs: LIMITS.refreshDelayMs,
      intervalMs: limits.refreshIntervalMs,
      longestMs: limits.refreshLongestMs,
      task: () => this.relist(),
    });
    this.#idle = createIdleClock({
      timeoutMs: () => server.policy().idleTimeoutMs,
      onExpired: () => {
        server.log.info(`${server.name} is closed: nothing used it`);
        server.onIdle();
      },
    });
  }

  /** A connection is open, or the definition that says how to watch it has changed. */
  start(connection: Connection): void {
    this.#idle.start();
    this.#stopHealthCheck();
    const { name, policy } = this.#server;
    if (policy().lifecycle !== "keep-alive") return;
    this.#stopHealthCheck = startHealthCheck(connection.ping, (error) => {
      // A connection that was replaced meanwhile says nothing about the server any more.
      if (this.#server.connected() === connection) this.#server.onSick(sickMessage(name, error));
    });
  }

  /** The connection is given up. */
  stop(): void {
    this.#idle.stop();
    this.#stopHealthCheck();
  }

  /** The server is closed: nothing is listed again. */
  close(): void {
    this.#refresh.stop();
  }

  /** Runs `use` as a use of the server: the idle time counts from its end. */
  async during<T>(use: () => Promise<T>): Promise<T> {
    this.#idle.begin();
    try {
      return await use();
    } finally {
      this.#idle.end();
      // After the use: a list must not stand in the way of a call.
      if (this.#server.connected()?.isStale()) this.#refresh.request();
    }
  }

  /** Settles when no use is open, or after `maxMs`. */
  async unused(maxMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.whenUnused(resolve);
    await settledWithin(promise, maxMs);
  }

  /** The server says that its lists changed. They are listed again soon, however often it says so. */
  onListChanged(): void {
    this.#refresh.request();
  }

  /** Lists the tools again over the open connection. Never rejects. */
  async relist(): Promise<void> {
    const { name, offer, redact, log } = this.#server;
    const connection = this.#server.connected();
    if (!connection) return;
    try {
      if (await offer.listAgain(connection)) this.#server.onListed();
    } catch (error) {
      const reason = redact(asReason(name, messageOf(error)));
      log.warn(`${name}: its changed tools could not be listed: ${reason}`);
    }
  }
}

function sickMessage(server: string, error: unknown): string {
  const reason = asReason(server, messageOf(error)).replace(/\.$/, "");
  return `${server} did not answer its health check: ${reason}.`;
}
