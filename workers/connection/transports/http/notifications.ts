/**
 * The stream on which a server speaks unasked (MCP 2025-11-25, basic/transports, listening for messages): opened
 * again whenever it ends, ever more slowly while nothing comes of it. The log says once that it is opened again, and
 * once that this has become rare. A server may offer none.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpResponse } from "./client.ts";
import { readEvents, type ServerEvent } from "./events.ts";

/** Until a stream that ended is opened again, where the server names no time, and at least. */
export const RESUME_MS = 1_000;
/** At most: 12 times an hour, whatever the server names. */
export const MAX_RESUME_MS = 5 * 60 * 1_000;
/** A stream that was open for so long was worth opening: proxies and hosts end a silent one after a while. */
const WORTHWHILE_MS = 10_000;

/** Wait before a stream is opened again. `vain`: streams in a row that ended soon and brought nothing. */
export const resumeAfterMs = (retryMs: number, vain: number): number =>
  Math.min(Math.max(retryMs, RESUME_MS) * 2 ** Math.min(vain, 20), MAX_RESUME_MS);

export interface NotificationOptions {
  /** Undefined: the server offers no such stream, which is not asked again. Rejects: it may later. */
  open: (lastId: string | undefined) => Promise<HttpResponse | undefined>;
  onEvent: (event: ServerEvent) => void;
  onNote: (note: string) => void;
  maxBytes: number;
  signal: AbortSignal;
  /** Settles after so many milliseconds, or rejects when the signal is aborted. */
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
    const outcome = await readStream(position, options);
    if (outcome === "not offered" || signal.aborted) return;
    vain = outcome === "worthwhile" ? 0 : vain + 1;
    const waitMs = resumeAfterMs(position.retryMs, vain);
    if (!isNoted) onNote("ended its notification stream; it is opened again from now on");
    isNoted = true;
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

/** Whether the stream ended or broke makes no difference: it is opened again. */
async function readStream(
  position: Position,
  { open, onEvent, maxBytes }: NotificationOptions,
): Promise<"worthwhile" | "vain" | "not offered"> {
  const before = position.lastId;
  let heard = false;
  let openedAt = Number.POSITIVE_INFINITY;
  try {
    const response = await open(before);
    if (!response) return "not offered";
    openedAt = performance.now();
    await readEvents(response.body, {
      maxBytes,
      onEvent: (event) => {
        heard = true;
        onEvent(event);
      },
      onId: (id) => {
        position.lastId = id;
      },
      onRetry: (retryMs) => {
        position.retryMs = retryMs;
      },
    });
  } catch {
    // Told by what was heard until then.
  }
  const isNew = heard || position.lastId !== before;
  return isNew || performance.now() - openedAt >= WORTHWHILE_MS ? "worthwhile" : "vain";
}
