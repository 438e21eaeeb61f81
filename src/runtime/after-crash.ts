/** Decides what follows the crash of a worker: another worker after a pause, or none. Pure. */
import { LIMITS } from "../shared/protocol/limits.ts";
import type { CrashPolicy } from "./contract.ts";

const MINUTE_MS = 60_000;

/** The end of one worker. */
export interface PastCrash {
  /** Milliseconds of the same clock as `now`. */
  at: number;
  /** Whether the crash counts towards giving up: no server is to blame for it. */
  isCounted: boolean;
}

export type AfterCrash =
  /** `recent`: the crashes of the last minute. */
  | { action: "restart"; delayMs: number; recent: readonly PastCrash[] }
  /** `count`: the counted crashes of the last minute. */
  | { action: "give-up"; count: number; recent: readonly PastCrash[] };

/** `crashes`: all that are remembered, the newest last. */
export function afterCrash(
  crashes: readonly PastCrash[],
  now: number,
  { respawnMs, respawnsAMinute }: CrashPolicy = LIMITS,
): AfterCrash {
  const recent = crashes.filter(({ at }) => now - at < MINUTE_MS);
  const count = recent.filter(({ isCounted }) => isCounted).length;
  if (count > respawnsAMinute) return { action: "give-up", count, recent };
  return {
    action: "restart",
    delayMs: respawnMs[Math.min(recent.length, respawnMs.length) - 1] ?? 0,
    recent,
  };
}
