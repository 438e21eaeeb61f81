/**
 * Tells a server that hangs from one that is slow. A call has run into its time limit: a server that has sent nothing since the
 * call began, and has nothing for a ping either, hangs. Whatever comes says that it lives, also for another call, and so does a
 * question to the person, while which no clock of a call runs.
 */
import { ThreadsError } from "../../../src/shared/protocol/errors.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import type { Connection } from "../mcp/connection.ts";

type Asked = Pick<Connection, "heard" | "ping">;

export class HangCheck<C extends Asked> {
  readonly #onHung: (connection: C, why: string) => void;
  #open: Promise<void> | undefined;

  /** `why`: follows the server's name. */
  constructor(onHung: (connection: C, why: string) => void) {
    this.#onHung = onHung;
  }

  /** Settles when it is known whether the server hangs. Never rejects. Undefined: there is no doubt. */
  get open(): Promise<void> | undefined {
    return this.#open;
  }

  /** Sends a request that may be a call. */
  async during<T>(connection: C, send: () => Promise<T>): Promise<T> {
    const heard = connection.heard?.();
    try {
      return await send();
    } catch (error) {
      if (heard !== undefined && error instanceof ThreadsError && error.code === "call_timeout")
        this.#ask(connection, heard, Number(error.data?.timeoutMs));
      throw error;
    }
  }

  #ask(connection: C, heard: number, limitMs: number): void {
    const isSilent = (): boolean => connection.heard?.() === heard;
    if (this.#open || !isSilent()) return;
    this.#open = connection
      .ping(LIMITS.healthAnswerMs)
      .catch(() => {
        if (!isSilent()) return;
        const [call, ping] = [limitMs / 1_000, LIMITS.healthAnswerMs / 1_000];
        const why = `is hung: it answered neither a call within ${call} s nor a ping within ${ping} s`;
        this.#onHung(connection, why);
      })
      .finally(() => {
        this.#open = undefined;
      });
  }
}
