/** What the panel shows: a reading of the session at one moment. Keys never change it. Types only. */
import type { ServerStatus, StatusReport } from "../../../shared/protocol/status.ts";

/** Estimated tokens of a server's tools as the model reads them: name, description and schema. */
export interface Cost {
  /** Of the tools that are declared to the model now. */
  declared: number;
  /** Of all its tools, as if each were declared. */
  all: number;
  /** Number of tools that are declared now. */
  declaredTools: number;
  /** False while tools are still being counted. */
  isWhole: boolean;
}

export interface World extends Omit<StatusReport, "servers"> {
  servers: readonly ServerStatus[];
  /** By the server's name. Absent: its tools are not known. */
  costs: ReadonlyMap<string, Cost>;
  /** The home folder, which is shown as `~`. */
  home: string;
  /** Milliseconds since the epoch. */
  now: number;
}
