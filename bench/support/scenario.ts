/**
 * Owns: the contract between the runner and a scenario.
 */

export interface ScenarioOptions {
  /** Runs of each case; undefined leaves the choice to the scenario. */
  runs: number | undefined;
  /** Names from `PEERS` in variants.ts of the clients to compare with. `none` is Pi without any MCP client. */
  vs: readonly string[];
  /** Of `shared` and `gateway`: how many sessions at most; undefined leaves the choice to the scenario. */
  sessions: number | undefined;
  /** Of `shared` and `gateway`: the short form, which proves that it works. */
  small: boolean;
  /** Prints one line on stderr, for a person who waits. */
  progress: (message: string) => void;
}

/** One figure of one case. */
export interface Row {
  /** The client and its conditions, for example `ours, warm, 2,000 tools`. */
  case: string;
  /** The name of the figure, for example `session_start handler`. */
  metric: string;
  unit:
    | "ms"
    | "µs"
    | "MB"
    | "KB"
    | "bytes"
    | "characters"
    | "tokens"
    | "entries"
    | "calls"
    | "processes"
    | "%";
  /** One value per run. */
  values: readonly number[];
  /** Case of the same scenario and metric that this one is compared with. */
  baseline?: string;
  /** Upper limit for the value or, with a baseline, for the difference to it. */
  target?: number;
  /** True if the target is a lower limit. */
  atLeast?: boolean;
  /** For a peer: the case of this package with the same scenario and metric, for the ratio. */
  ours?: string;
  /** Reason for a missing value, or a remark about the value. */
  note?: string;
}

export interface Scenario {
  name: string;
  description: string;
  run(options: ScenarioOptions): Promise<Row[]>;
}

/** Removes the comparisons from a row whose figure describes the machine, not a client. */
export function alone({ baseline: _baseline, ours: _ours, ...row }: Row): Row {
  return row;
}
