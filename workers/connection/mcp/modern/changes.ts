/**
 * The stream on which a server tells that its lists changed (MCP 2026-07-28, basic/patterns/subscriptions). Opened again
 * when it ends, ever more slowly while it ends soon; lists may have changed in between, so each time they are asked for.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { isObject } from "../../../../src/shared/protocol/values.ts";
import { LISTEN_AGAIN_MOST_MS, LISTEN_AGAIN_MS } from "./limits.ts";

/** A stream that was open for this long was worth opening. */
const WORTHWHILE_MS = 10_000;

/** What the server is asked to tell, by what it says that it can tell. Undefined: it tells nothing. */
export function changesFilter(capabilities: Record<string, unknown>): Record<string, true> | undefined {
  const kinds = ["tools", "prompts", "resources"].filter((kind) => {
    const can = capabilities[kind];
    return isObject(can) && can.listChanged === true;
  });
  return kinds.length === 0
    ? undefined
    : Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true]));
}

/** Pause before the stream is opened again. `vain`: streams in a row that ended soon. */
export const listenAgainMs = (vain: number): number =>
  Math.min(LISTEN_AGAIN_MS * 2 ** Math.min(vain, 20), LISTEN_AGAIN_MOST_MS);

interface ListenOptions {
  /** Settles when the stream has ended, however it ended. Rejects if the server does not offer it. */
  open: (signal: AbortSignal) => Promise<void>;
  onChanged: () => void;
  onNote: (note: string) => void;
  signal: AbortSignal;
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  now?: () => number;
}

const realWait = (ms: number, signal: AbortSignal): Promise<unknown> =>
  sleep(ms, undefined, { signal, ref: false });

/** Settles when the signal is aborted, or when the server does not offer the stream. Never rejects. */
export async function followChanges(options: ListenOptions): Promise<void> {
  const { open, onChanged, onNote, signal, wait = realWait, now = () => performance.now() } = options;
  let vain = 0;
  for (let again = 0; !signal.aborted; again++) {
    const openedAt = now();
    if (again > 0) onChanged();
    try {
      await open(signal);
    } catch (error) {
      if (!signal.aborted)
        onNote(`does not tell when its lists change: ${error instanceof Error ? error.message : ""}`);
      return;
    }
    if (again === 0 && !signal.aborted)
      onNote("ended the stream that tells of changed lists; it is opened again");
    vain = now() - openedAt >= WORTHWHILE_MS ? 0 : vain + 1;
    await wait(listenAgainMs(vain), signal).catch(() => undefined);
  }
}

interface StreamOptions extends Pick<ListenOptions, "signal" | "onNote" | "onChanged" | "wait"> {
  /** Sends the request that is the stream. Settles when the stream has ended. */
  request: (signal: AbortSignal) => Promise<unknown>;
  /** Whether the error is the server's word that it offers no stream. */
  isRefusal: (error: unknown) => boolean;
}

export class ChangeStream {
  /** Undefined: none is open. Its id is unknown until the server has acknowledged it. */
  #open: { id: unknown; end: () => void } | undefined;
  /** Whether what the server tells is heard, or found out when the stream is opened again. */
  isFollowed = false;

  /** The server tells the id of the stream. */
  acknowledged(id: unknown): void {
    if (this.#open) this.#open.id = id;
  }

  /** The server has cancelled a request. If it is the stream, the stream ends, and is opened again. */
  cancelled(id: unknown): void {
    if (this.#open?.id !== undefined && this.#open.id === id) this.#open.end();
  }

  /** Opens the stream, again and again, until the signal is aborted or the server refuses it. Never rejects. */
  async follow({ request, isRefusal, ...listen }: StreamOptions): Promise<void> {
    this.isFollowed = true;
    await followChanges({
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
    this.isFollowed = false;
  }
}
