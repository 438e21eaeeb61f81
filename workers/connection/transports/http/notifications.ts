/**
 * The stream on which a server sends messages that answer no request (MCP 2025-11-25, basic/transports, listening for
 * messages). Owns: opening the stream again whenever it ends, ever more slowly while the stream brings nothing. The log
 * says once that the stream is opened again, once that this has become rare, and each time that a message was refused.
 * A server may offer no such stream.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Noise } from "../../messages/noise.ts";
import { TooLarge } from "../../messages/too-large.ts";
import type { HttpResponse } from "../../web/client.ts";
import { readEvents, type ServerEvent } from "./events.ts";

/** Shortest wait until a stream that has ended is opened again. It also holds if the server names no time. */
export const RESUME_MS = 1_000;
/** Longest wait: the stream is opened 12 times an hour, whatever the server names. */
export const MAX_RESUME_MS = 5 * 60 * 1_000;
/** A stream that was open for this long was worth opening: proxies and hosts end a silent stream after a while. */
const WORTHWHILE_MS = 10_000;

/** Wait in ms before a stream is opened again. `vain`: streams in a row that ended soon and brought nothing. */
export const resumeAfterMs = (retryMs: number, vain: number): number =>
  Math.min(Math.max(retryMs, RESUME_MS) * 2 ** Math.min(vain, 20), MAX_RESUME_MS);

export interface NotificationOptions {
  /**
   * Opens the stream behind event `lastId`. Undefined: the server offers no such stream and is not asked again. Rejects
   * if the server may offer the stream later.
   */
  open: (lastId: string | undefined) => Promise<HttpResponse | undefined>;
  noise: Noise;
  onEvent: (event: ServerEvent) => undefined | Promise<unknown>;
  onNote: (note: string) => void;
  maxBytes: number;
  signal: AbortSignal;
  /** Settles after `ms` milliseconds, or rejects when the signal is aborted. */
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>;
}

const realWait = (ms: number, signal: AbortSignal): Promise<unknown> =>
  sleep(ms, undefined, { signal, ref: false });

/** Settles when the signal is aborted or the server offers no stream. Never rejects. */
export async function followNotifications(options: NotificationOptions): Promise<void> {
  const { signal, onNote, wait = realWait } = options;
  const position: Position = { lastId: undefined, retryMs: RESUME_MS };
  let vain = 0;
  let isNoted = false;
  let isNotedRare = false;
  while (!signal.aborted) {
    const stream = await readStream(position, options);
    if (stream === "not offered" || signal.aborted) return;
    vain = stream.isWorthwhile ? 0 : vain + 1;
    const waitMs = resumeAfterMs(position.retryMs, vain);
    if (stream.refused && !stream.refused.isNoise) {
      // Each time: with each refused message something of the server's is lost.
      const { what, remedy } = stream.refused.excess;
      onNote(`sent ${what} on its notification stream, which is opened again without it. ${remedy}`);
    } else if (!isNoted) {
      onNote("ended its notification stream; it is opened again from now on");
      isNoted = true;
    }
    if (waitMs === MAX_RESUME_MS && !isNotedRare) {
      onNote(
        `ends its notification stream at once each time; it is opened every ${waitMs / 60_000} minutes now`,
      );
      isNotedRare = true;
    }
    await wait(waitMs, signal).catch(() => undefined);
  }
}

interface Position {
  lastId: string | undefined;
  retryMs: number;
}

interface EndedStream {
  /** The stream brought something, or was open for a while. */
  isWorthwhile: boolean;
  /** This side ended the stream because of the size of a message. */
  refused: TooLarge | undefined;
}

/** It makes no difference whether the stream ended or broke: the stream is opened again. */
async function readStream(
  position: Position,
  { open, noise, onEvent, maxBytes }: NotificationOptions,
): Promise<EndedStream | "not offered"> {
  const before = position.lastId;
  let heard = false;
  let openedAt = Number.POSITIVE_INFINITY;
  let refused: TooLarge | undefined;
  try {
    const response = await open(before);
    if (!response) return "not offered";
    openedAt = performance.now();
    await readEvents(response.body, {
      maxBytes,
      noise,
      onEvent: (event) => {
        heard = true;
        return onEvent(event);
      },
      onId: (id) => {
        position.lastId = id;
      },
      onRetry: (retryMs) => {
        position.retryMs = retryMs;
      },
    });
  } catch (error) {
    // Any other error is how the stream broke, which says no more than what came before.
    if (error instanceof TooLarge) refused = error;
  }
  const isNew = heard || position.lastId !== before;
  const isWorthwhile = isNew || performance.now() - openedAt >= WORTHWHILE_MS;
  return { isWorthwhile: isWorthwhile && !refused?.isNoise, refused };
}
