/**
 * The sign-ins that have not answered their first step, by server. Before that step nothing else knows of them that could end
 * them, for example when the server is switched off.
 */
import { abortable } from "../../shared/pace/abort.ts";

export class Beginnings {
  readonly #ends = new Map<string, AbortController>();

  /** Rejects with `cancelled` once the beginning is ended, or as `begin` does. */
  run<T, W extends { signal: AbortSignal }>(
    server: string,
    wish: W,
    begin: (wish: W) => Promise<T>,
  ): Promise<T> {
    const end = this.#ends.get(server) ?? new AbortController();
    this.#ends.set(server, end);
    const signal = AbortSignal.any([wish.signal, end.signal]);
    return abortable(begin({ ...wish, signal }), end.signal, `The sign-in to ${server}`);
  }

  end(server: string): void {
    this.#ends.get(server)?.abort();
    this.#ends.delete(server);
  }
}
