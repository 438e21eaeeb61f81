/** How soon the process of a server is ended when nobody needs its answers any more. */
import { LIMITS } from "../../../src/shared/protocol/limits.ts";

/** Milliseconds until SIGTERM and until SIGKILL, both from the end of stdin. */
export interface CloseTimes {
  termMs: number;
  killMs: number;
  /** Whether nobody waits for the end of a process that was sent SIGKILL. */
  isLast?: boolean;
}

/** For a connection that ends with the session, or before it was of use. */
export const SHUTDOWN_TIMES: CloseTimes = { termMs: LIMITS.shutdownTermMs, killMs: LIMITS.shutdownKillMs };

/**
 * For a server that was never called and is not wanted any more: it has nothing to finish. SIGTERM first, because a
 * client of a container passes it on.
 */
export const UNUSED_TIMES: CloseTimes = { termMs: 0, killMs: 10, isLast: true };
