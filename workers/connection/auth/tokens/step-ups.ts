/** How often the user has signed in to a server for the same further scope. A server that grants less would go on for ever. */

/** MCP 2025-11-25, basic/authorization, "Step-Up Authorization Flow": "no more than a few times". */
const MOST = 2;
/** Sets of scopes that are remembered. */
const SETS = 100;

export interface StepUps {
  /** The user has signed in for this scope. */
  count(scope: string | undefined): void;
  isAllowed(scope: string | undefined): boolean;
}

/** Scopes have no order (RFC 6749, section 3.3). */
const keyOf = (scope: string | undefined): string =>
  [...new Set((scope ?? "").split(/\s+/))].sort().join(" ").trim();

export function createStepUps(): StepUps {
  const times = new Map<string, number>();
  return {
    count: (scope) => {
      const key = keyOf(scope);
      times.set(key, (times.get(key) ?? 0) + 1);
      const [oldest] = times.keys();
      if (times.size > SETS && oldest !== undefined) times.delete(oldest);
    },
    isAllowed: (scope) => (times.get(keyOf(scope)) ?? 0) < MOST,
  };
}
