/**
 * Owns: when a stream that ended before its answer is resumed (MCP 2025-11-25, basic/transports, resumability and
 * redelivery). A server may close the stream on purpose and let the client poll while a tool runs. Pure except for the
 * clock, which is a parameter.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";

/** The wait if the server names none. */
const RESUME_MS = 1_000;
/** The shortest wait that a server may name. */
const MIN_RESUME_MS = 100;
/** Limit for attempts in a row that fail. */
const FAILED_ATTEMPTS = 2;
/** Limit for streams in a row without a message. Their waits grow, so this takes more than an hour. */
const VAIN_ATTEMPTS = 200;
/** The next wait as a share of the silence so far: an answer is late by this share at most. */
const SHARE_OF_SILENCE = 0.1;

export interface Resume {
  /** The last event's id; undefined if the server names none, so that nothing can be resumed. */
  readonly lastId: string | undefined;
  onId(id: string): void;
  onRetry(retryMs: number): void;
  /** The stream has brought a message. */
  onMessage(): void;
  /** The last attempt to open a stream has worked or failed. */
  onAttempt(worked: boolean): void;
  /** Wait in ms before the next attempt; undefined: there is no other attempt. */
  nextMs(): number | undefined;
}

export function createResume(now: () => number): Resume {
  let lastId: string | undefined;
  let retryMs: number = RESUME_MS;
  let failed = 0;
  let vain = 0;
  let heardAt = now();
  return {
    get lastId() {
      return lastId;
    },
    onId: (id) => {
      lastId = id;
    },
    onRetry: (ms) => {
      retryMs = ms;
    },
    onMessage: () => {
      vain = 0;
      heardAt = now();
    },
    onAttempt: (worked) => {
      failed = worked ? 0 : failed + 1;
      vain++;
    },
    nextMs: () => {
      if (lastId === undefined || failed >= FAILED_ATTEMPTS || vain >= VAIN_ATTEMPTS) return undefined;
      const silentMs = now() - heardAt;
      return Math.min(Math.max(retryMs, MIN_RESUME_MS, silentMs * SHARE_OF_SILENCE), LIMITS.startupTimeoutMs);
    },
  };
}
