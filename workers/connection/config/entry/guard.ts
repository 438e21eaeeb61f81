/** The limits of the output guard, read from settings. Pure. */
import { LIMITS } from "../../../../src/shared/protocol/limits.ts";

export interface GuardLimits {
  maxBytes: number;
  maxLines: number;
}

export const DEFAULT_GUARD: GuardLimits = { maxBytes: LIMITS.resultBytes, maxLines: LIMITS.resultLines };

const isLimit = (value: unknown): value is number => typeof value === "number" && value >= 1;

/**
 * The limits that result from settings; later ones win. A setting is `{maxBytes?, maxLines?}`, `false` for no limit,
 * or `undefined` or `true` to keep the limits before it. Any other value is ignored; the configuration reports it.
 */
export function guardFrom(...settings: readonly unknown[]): GuardLimits | false {
  let limits: GuardLimits | false = DEFAULT_GUARD;
  for (const setting of settings) {
    if (setting === false) limits = false;
    if (typeof setting !== "object" || setting === null) continue;
    const { maxBytes, maxLines } = setting as Partial<Record<keyof GuardLimits, unknown>>;
    const base: GuardLimits = limits === false ? DEFAULT_GUARD : limits;
    limits = {
      maxBytes: isLimit(maxBytes) ? Math.floor(maxBytes) : base.maxBytes,
      maxLines: isLimit(maxLines) ? Math.floor(maxLines) : base.maxLines,
    };
  }
  return limits;
}
