/** Starts and calls that come near their limits. Pure. */
import type { Finding } from "../../../src/shared/protocol/doctor.ts";
import { LIMITS } from "../../../src/shared/protocol/limits.ts";
import { counted } from "../../../src/shared/text/counts.ts";
import { formatMs } from "../../../src/shared/text/size.ts";
import { callTimeoutMs } from "../servers/call.ts";
import type { ServerTimings } from "../servers/server.ts";
import type { DoctorInput } from "./check.ts";

/** A start that takes more than this part of its limit fails on a slower day. */
const SLOW_START = 0.5;
const SLOW_CALL = 0.8;

export interface TimeLimits {
  startMs: number;
  callMs: number;
}

export function judgeTimes(
  server: string,
  timings: ServerTimings,
  { startMs, callMs }: TimeLimits,
): Finding[] {
  const { startMs: tookMs = 0, slowestCallMs, lateCalls } = timings;
  const about = { id: "time-out", server } as const;
  const found: Finding[] = [];
  if (tookMs > SLOW_START * startMs) {
    found.push({
      ...about,
      severity: "warning",
      title: `Its last start took ${formatMs(tookMs)} of the ${formatMs(startMs)} that it may take.`,
      remedy: `Set "startupTimeoutMs" of the server to ${2 * Math.ceil(tookMs / 10_000) * 10_000}, or "lifecycle": "eager".`,
    });
  }
  if (lateCalls > 0) {
    found.push({
      ...about,
      severity: "warning",
      title: `${counted(lateCalls, "call")} got no answer within ${formatMs(callMs)}.`,
      remedy: `Set "requestTimeoutMs" of the server to more than ${callMs} if its tools need more time.`,
    });
  } else if (slowestCallMs > SLOW_CALL * callMs) {
    found.push({
      ...about,
      severity: "note",
      title: `Its slowest call took ${formatMs(slowestCallMs)}, and ${formatMs(callMs)} is the limit without progress.`,
      remedy: `Set "requestTimeoutMs" of the server to more than ${callMs} if its tools need more time.`,
    });
  }
  return found;
}

export const checkTimes = ({ servers }: DoctorInput): Finding[] =>
  servers.flatMap(({ name, timings, definition }) =>
    judgeTimes(name, timings, {
      startMs: definition.startupTimeoutMs ?? LIMITS.startupTimeoutMs,
      callMs: callTimeoutMs(definition),
    }),
  );
