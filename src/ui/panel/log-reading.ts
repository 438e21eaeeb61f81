/** Follows the log of one server while it is shown: each request waits in the worker until there are new lines. */
import { messageOf } from "../../shared/protocol/errors.ts";
import type { PanelHost } from "./host.ts";

/** Milliseconds between two readings of a log after one failed. */
const LOG_PAUSE_MS = 2_000;

const pause = (): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, LOG_PAUSE_MS).unref();
  });

export interface LogReading {
  /** Follows this server's log, and no other's. Undefined: no log is shown. */
  follow(server: string | undefined): void;
}

export function createLogReading(
  host: Pick<PanelHost, "ask">,
  put: (server: string, lines: readonly string[]) => void,
): LogReading {
  let open: { server: string; giveUp: AbortController } | undefined;

  const read = async (server: string, signal: AbortSignal): Promise<void> => {
    let seen: number | undefined;
    while (!signal.aborted) {
      try {
        const { lines, size } = await host.ask("serverLog", { server, seen }, signal);
        if (signal.aborted) return;
        if (seen !== size) put(server, lines);
        seen = size;
      } catch (error) {
        if (signal.aborted) return;
        // The worker may have ended; the next one reads the same file.
        put(server, [messageOf(error)]);
        seen = undefined;
        await pause();
      }
    }
  };

  return {
    follow: (server) => {
      if (open?.server === server) return;
      open?.giveUp.abort();
      open = undefined;
      if (server === undefined) return;
      open = { server, giveUp: new AbortController() };
      void read(server, open.giveUp.signal);
    },
  };
}
