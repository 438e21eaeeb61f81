/**
 * The listeners that are open, one for each loopback address and port. Sign-ins with the same port share one. A listener
 * is closed when the last sign-in that uses it has ended.
 */
import { type CallbackServer, type CallbackTimes, openCallback, type Waiter } from "./callback.ts";

/** The share of one sign-in in its listeners. It ends with the signal that was given for it. */
export interface Listening {
  port: number;
  wait(waiter: Waiter): void;
}

const IPV4 = "127.0.0.1";
const IPV6 = "::1";
/** A free port of one address may be busy at the other. */
const FREE_PORT_TRIES = 3;
/** This machine has no such address. */
const NO_ADDRESS = ["EADDRNOTAVAIL", "EAFNOSUPPORT"];

export const codeOf = (error: unknown): string => String((error as NodeJS.ErrnoException | null)?.code ?? "");

/** What one sign-in has of one listener. */
interface Sharing {
  port: number;
  wait(waiter: Waiter): void;
}

interface Shared {
  opening: Promise<CallbackServer>;
  users: number;
}

export class Listeners {
  readonly #times: CallbackTimes;
  readonly #shared = new Map<string, Shared>();
  readonly #open = new Set<CallbackServer>();

  constructor(times: CallbackTimes) {
    this.#times = times;
  }

  /**
   * Listens at the host of a redirect URI, for `localhost` at both loopback addresses, until the signal fires.
   * `port` 0: any free one. Rejects with Node's error.
   */
  async open(hostname: string, port: number, signal: AbortSignal): Promise<Listening> {
    if (hostname !== "localhost") {
      const address = hostname.replace(/^\[|\]$/g, "");
      return this.#listening([await this.#share(address, port, signal)]);
    }
    for (let nth = 1; ; nth++) {
      const attempt = new AbortController();
      const both = AbortSignal.any([signal, attempt.signal]);
      const first = await this.#share(IPV4, port, both);
      try {
        return this.#listening([first, await this.#share(IPV6, first.port, both)]);
      } catch (error) {
        if (NO_ADDRESS.includes(codeOf(error))) return this.#listening([first]);
        attempt.abort();
        if (port !== 0 || nth === FREE_PORT_TRIES) throw error;
      }
    }
  }

  async end(): Promise<void> {
    await Promise.all([...this.#open].map((server) => server.end()));
  }

  #listening(servers: [Sharing, ...Sharing[]]): Listening {
    return {
      port: servers[0].port,
      wait: (waiter) => {
        for (const server of servers) server.wait(waiter);
      },
    };
  }

  async #share(address: string, port: number, signal: AbortSignal): Promise<Sharing> {
    signal.throwIfAborted();
    const known = port === 0 ? undefined : this.#shared.get(`${address} ${port}`);
    const shared = known ?? { opening: this.#openServer(address, port), users: 0 };
    if (port !== 0) this.#shared.set(`${address} ${port}`, shared);
    shared.users++;
    const server = await shared.opening.catch((error: unknown) => {
      this.#forget(address, port, shared);
      throw error;
    });
    if (!known) this.#shared.set(`${address} ${server.port}`, shared);
    let mine: Waiter | undefined;
    const leave = (): void => {
      if (mine) server.waiters.delete(mine);
      if (--shared.users > 0) return;
      this.#forget(address, server.port, shared);
      server.close();
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    signal.throwIfAborted();
    return {
      port: server.port,
      wait: (waiter) => {
        mine = waiter;
        server.waiters.add(waiter);
      },
    };
  }

  #forget(address: string, port: number, shared: Shared): void {
    const key = `${address} ${port}`;
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
  }

  async #openServer(address: string, port: number): Promise<CallbackServer> {
    const server = await openCallback(address, port, this.#times);
    this.#open.add(server);
    void server.closed.then(() => this.#open.delete(server));
    return server;
  }
}
