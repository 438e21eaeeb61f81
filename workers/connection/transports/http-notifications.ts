/**
 * The stream on which a server speaks unasked (MCP 2025-11-25, basic/transports, listening for messages): opened
 * again whenever it ends, slower while nothing comes of it, told in the log once. A server may offer none.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpResponse } from "./http-client.ts";
import { readEvents, type ServerEvent } from "./sse-reader.ts";

/** Until a stream that ended is opened again, where the server names no time; doubled while nothing comes. */
export const RESUME_MS = 1_000;
const MAX_RESUME_MS = 30_000;

export interface NotificationOptions {
  /** Undefined: the server offers no such stream, which is not asked again. Rejects: it may later. */
  open: (lastId: string | undefined) => Promise<HttpResponse | undefined>;
  onEvent: (event: ServerEvent) => void;
  onNote: (note: string) => void;
  maxBytes: number;
  signal: AbortSignal;
}

/** Settles when the signal is aborted or the server offers no stream. Never rejects. */
export async function followNotifications({ signal, ...options }: NotificationOptions): Promise<void> {
  let lastId: string | undefined;
  let retryMs: number = RESUME_MS;
  let idle = 0;
  let noted = false;
  while (!signal.aborted) {
    const before = lastId;
    let heard = false;
    try {
      const response = await options.open(lastId);
      if (!response) return;
      await readEvents(response.body, {
        maxBytes: options.maxBytes,
        onEvent: (event) => {
          heard = true;
          options.onEvent(event);
        },
        onId: (id) => {
          lastId = id;
        },
        onRetry: (ms) => {
          retryMs = ms;
        },
      });
    } catch {
      // Whether it ended or broke, it is opened again below.
    }
    if (signal.aborted) return;
    if (!noted) options.onNote("ended its notification stream; it is opened again from now on");
    noted = true;
    idle = heard || lastId !== before ? 0 : idle + 1;
    const waitMs = Math.min(retryMs * 2 ** Math.min(idle, 5), MAX_RESUME_MS);
    await sleep(waitMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
