/**
 * The stream on which one server tells that its lists changed (MCP 2026-07-28, basic/patterns/subscriptions), as long as its
 * connection lasts. Owns: which request is the stream, so that the server can end it by a cancellation.
 */
import { followChanges, type ListenOptions } from "./modern/listen.ts";

export interface StreamOptions extends Pick<ListenOptions, "signal" | "onNote" | "onChanged" | "wait"> {
  /** Sends the request that is the stream. Settles when the stream has ended. */
  request: (signal: AbortSignal) => Promise<unknown>;
  /** Whether the error is the server's word that it offers no stream. */
  isRefusal: (error: unknown) => boolean;
}

export class ChangeStream {
  /** Undefined: none is open. Its id is unknown until the server has acknowledged it. */
  #open: { id: unknown; end: () => void } | undefined;

  /** The server tells the id of the stream. */
  acknowledged(id: unknown): void {
    if (this.#open) this.#open.id = id;
  }

  /** The server has cancelled a request. If it is the stream, the stream ends, and is opened again. */
  cancelled(id: unknown): void {
    if (this.#open?.id !== undefined && this.#open.id === id) this.#open.end();
  }

  /** Opens the stream, again and again, until the signal is aborted or the server refuses it. Never rejects. */
  follow({ request, isRefusal, ...listen }: StreamOptions): Promise<void> {
    return followChanges({
      ...listen,
      open: async (signal) => {
        const ended = new AbortController();
        this.#open = { id: undefined, end: () => ended.abort() };
        try {
          await request(AbortSignal.any([signal, ended.signal]));
        } catch (error) {
          // The SDK rejects a request that was given up as if the server had refused it.
          if (!ended.signal.aborted && isRefusal(error)) throw error;
        }
      },
    });
  }
}
