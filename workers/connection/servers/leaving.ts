/** Closes the connections that a server has given up, at once or when their calls are done. Called by: life.ts. */

import { messageOf } from "../../../src/shared/protocol/errors.ts";
import type { Log } from "../../shared/log.ts";
import type { CloseTimes } from "../../shared/programs/close-times.ts";
import type { Connection } from "../mcp/connection.ts";

export interface Leaving {
  /** Does not wait for the connection's end. `after`: it is closed when this settles, or when the server is closed. */
  close(connection: Connection | undefined, times: CloseTimes, after?: Promise<void>): void;
  /** Settles when every connection so far is closed. Never rejects. */
  settled(): Promise<unknown>;
}

export function createLeaving(name: string, log: Log, lifetime: AbortSignal): Leaving {
  const ended = new Promise<void>((resolve) => {
    lifetime.addEventListener("abort", () => resolve(), { once: true });
  });
  let closing: Promise<unknown> = Promise.resolve();
  const closeAfter = async (
    connection: Connection,
    times: CloseTimes,
    after: Promise<void>,
  ): Promise<void> => {
    try {
      await Promise.race([after, ended]);
      await connection.close(times);
    } catch (error) {
      log.error(`${name}: closing failed: ${messageOf(error)}`);
    }
  };
  return {
    close: (connection, times, after) => {
      if (!connection) return;
      // Without a reason to wait it is closed now, not in a later turn.
      const closed = after
        ? closeAfter(connection, times, after)
        : connection.close(times).catch((error) => log.error(`${name}: closing failed: ${messageOf(error)}`));
      closing = Promise.all([closing, closed]);
    },
    settled: () => closing,
  };
}
