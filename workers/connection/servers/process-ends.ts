/**
 * Knows which processes of a session are ending, by the name of their server, so that the next process of that name starts
 * after them: they may hold a port, a lock or a database until then. Only processes that are the session's own count.
 */
import { settledWithin } from "../../shared/pace/abort.ts";
import type { ServerDefinition } from "../config/entry/definition.ts";
import type { Connection } from "../mcp/connection.ts";

export class ProcessEnds {
  readonly #ends = new Map<string, Promise<void>>();

  /** `ended`: settles when the process behind the connection has ended, or the attempt to start one. */
  add(name: string, by: Connection | ServerDefinition["target"], ended: Promise<unknown>): void {
    const isOwn =
      "kind" in by ? by.kind === "stdio" : by.transport === "stdio" && by.sharing?.() === undefined;
    if (!isOwn) return;
    const all = Promise.allSettled([this.#ends.get(name), ended]).then(() => {
      if (this.#ends.get(name) === all) this.#ends.delete(name);
    });
    this.#ends.set(name, all);
  }

  /** Settles when the server may start: after `mostMs`, or when the signal fires, in any case. */
  async before({ name, target }: ServerDefinition, mostMs: number, signal: AbortSignal): Promise<void> {
    const ends = this.#ends.get(name);
    if (!ends || target.kind !== "stdio") return;
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    const onAbort = (): void => resolve();
    signal.addEventListener("abort", onAbort, { once: true });
    if (!signal.aborted) await settledWithin(Promise.race([ends, aborted]), mostMs);
    signal.removeEventListener("abort", onAbort);
  }
}
