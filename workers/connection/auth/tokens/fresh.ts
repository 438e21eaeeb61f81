/** How long a token is used before it is renewed. Pure. Times are milliseconds since the epoch. */
import type { GivenTokens, SignInRecord } from "../model/model.ts";

/** A token is renewed so long before its end, or a tenth of its life before it, whichever is shorter. */
const EARLY_MS = 60_000;
const EARLY_PART = 0.1;

type Times = Pick<SignInRecord, "expiresAt" | "obtainedAt">;

/** Whether a token has passed its end. A token without a known end has not. */
export const isExpired = ({ expiresAt }: Pick<GivenTokens, "expiresAt">, nowMs: number): boolean =>
  expiresAt !== undefined && expiresAt <= nowMs;

/** Whether a request that begins now can use the token without renewing it first. */
export function isFresh({ expiresAt, obtainedAt }: Times, nowMs: number): boolean {
  if (expiresAt === undefined) return true;
  const lifeMs = obtainedAt === undefined ? Number.POSITIVE_INFINITY : Math.max(0, expiresAt - obtainedAt);
  return expiresAt - nowMs > Math.min(EARLY_MS, lifeMs * EARLY_PART);
}
