/**
 * When the stream of an answer that ended too early is asked for again (MCP 2025-11-25, basic/transports,
 * resumability and redelivery). A server may close it on purpose and have the client poll while a tool runs. Pure
 * but for the clock that the caller passes in.
 */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";

/** Where the server names no time. */
const RESUME_MS = 1_000;
/** A server may name no less. */
const MIN_RESUME_MS = 100;
/** Attempts in a row that fail. */
const FAILED_ATTEMPTS = 2;
/** Streams in a row that bring nothing new: with waits that grow, more than an hour. */
const VAIN_ATTEMPTS = 200;
/** Of the silence so far that the next wait may take: an answer comes so much later at most. */
const SHARE_OF_SILENCE = 0.1;

export interface Resume {
  /** The last event's id; undefined where the server names none, and so nothing can be resumed. */
  readonly lastId: string | undefined;
  onId(id: string): void;
  onRetry(retryMs: number): void;
  /** A message came. */
  onMessage(): void;
  /** The last attempt brought a stream, or failed. */
  onAttempt(worked: boolean): void;
  /** Wait before the next attempt; undefined: there is none. */
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
