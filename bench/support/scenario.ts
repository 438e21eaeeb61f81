/**
 * Owns: the contract between the runner and a scenario.
 */

export interface ScenarioOptions {
  /** Runs of each case; undefined leaves the choice to the scenario. */
  runs: number | undefined;
  /** Names of what to compare with, of `PEERS` in variants.ts. `none`: Pi without any MCP client. */
  vs: readonly string[];
  /** One line for the person who waits, on stderr. */
  progress: (message: string) => void;
}

/** One figure of one case. */
export interface Row {
  /** What was varied, for example `ours, warm, 2,000 tools`. */
  case: string;
  /** What was measured, for example `session_start handler`. */
  metric: string;
  unit: "ms" | "µs" | "MB" | "KB" | "bytes" | "characters" | "tokens" | "entries" | "calls" | "%";
  /** One value a run. */
  values: readonly number[];
  /** Case of the same scenario and metric that this one is compared with. */
  baseline?: string;
  /** The most that the value, or its difference to the baseline, should be. */
  target?: number;
  /** With `atLeast` the target is a floor for the value. */
  atLeast?: boolean;
  /** For a peer: our case of the same scenario and metric, for the ratio. */
  ours?: string;
  /** Reason for a missing value, or a remark about the value. */
  note?: string;
}

export interface Scenario {
  name: string;
  description: string;
  run(options: ScenarioOptions): Promise<Row[]>;
}

/** The row without its baseline: it describes the machine. */
export function alone({ baseline: _baseline, ours: _ours, ...row }: Row): Row {
  return row;
}
