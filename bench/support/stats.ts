/**
 * Owns: the arithmetic of the benches: medians, percentiles, formatted numbers.
 * Must not: measure or print.
 */

export interface Summary {
  median: number;
  min: number;
  max: number;
}

/** The value below which `fraction` (0 to 1) of the values lie, by nearest rank. NaN for no values. */
export function percentile(values: readonly number[], fraction: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.max(Math.ceil(fraction * sorted.length), 1);
  return sorted[rank - 1] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

export function summarize(values: readonly number[]): Summary {
  return { median: median(values), min: percentile(values, 0), max: percentile(values, 1) };
}

/** Two significant digits below 1, else three or all digits before the point: `0.012`, `4.56`, `1,234`. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const magnitude = Math.abs(value);
  const whole = Math.max(Math.floor(Math.log10(magnitude || 1)) + 1, 0);
  const digits =
    magnitude < 1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: Math.max(3 - whole, 0) };
  return value.toLocaleString("en-US", digits);
}
