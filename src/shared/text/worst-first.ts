/** The order in which people read findings. Pure. */
import type { Finding, Severity } from "../protocol/doctor.ts";

const RANKS: Readonly<Record<Severity, number>> = { error: 0, warning: 1, note: 2, ok: 3 };

/** Whether there is something to do. */
export const isTrouble = ({ severity }: Pick<Finding, "severity">): boolean =>
  severity === "error" || severity === "warning";

/** The worst first; findings of one severity keep their order. */
export const worstFirst = (findings: readonly Finding[]): Finding[] =>
  findings.toSorted((a, b) => RANKS[a.severity] - RANKS[b.severity]);
