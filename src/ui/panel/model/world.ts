/** What the panel shows: a reading of the session at one moment. Keys never change it. Types, and the key of `chosen`. */
import type { RulePlace, ServerDetails, ToolExposure } from "../../../shared/protocol/panel.ts";
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

/** One tool of a server, hidden ones too. */
export interface ToolRow {
  /** The server's own name of it. */
  key: string;
  /** Name in Pi; undefined for a hidden tool, which the catalog does not hold. */
  name: string | undefined;
  description: string;
  exposure: ToolExposure;
  /** The rule that decides; undefined: none. */
  place: RulePlace | undefined;
  /** What a filter is compared with, in small letters. */
  text: string;
}

/** The tools of one server. A change makes another object, so what is worked out of one can be kept beside it. */
export interface ToolList {
  rows: readonly ToolRow[];
  /** Position by key. */
  at: ReadonlyMap<string, number>;
}

/** One hit of a tried search. */
export interface Hit {
  /** Name in Pi. */
  key: string;
  server: string;
  /** The server's own name of it. */
  tool: string;
  score: number;
  description: string;
}

export interface Tried {
  query: string;
  hits: readonly Hit[];
  likely: number;
  tookMs: number;
  /** Number of tools that were ranked. */
  count: number;
}

export interface World extends Omit<StatusReport, "servers"> {
  servers: readonly ServerStatus[];
  /** By the server's name. Absent: its tools are not known. */
  costs: ReadonlyMap<string, Cost>;
  /** By the server's name, once they have been told. */
  details: ReadonlyMap<string, ServerDetails>;
  /** By the server's name, once they are known. */
  tools: ReadonlyMap<string, ToolList>;
  /** Estimated tokens of a tool by its name in Pi; undefined while it is not counted. */
  tokensOf: (name: string) => number | undefined;
  /** What the person has just chosen for tools, by server and tool, until it is in effect. */
  chosen: ReadonlyMap<string, ToolExposure>;
  /** The schema of the tool that is looked at, as its server declares it. */
  schema: { server: string; tool: string; text: string } | undefined;
  log: { server: string; lines: readonly string[] } | undefined;
  /** The statistics of calls, or the doctor's findings about a server, for a width. */
  report: { of: string; text: (columns: number) => string } | undefined;
  tried: Tried | undefined;
  /** The home folder, which is shown as `~`. */
  home: string;
  /** Milliseconds since the epoch. */
  now: number;
}

export const chosenKey = (server: string, tool: string): string => `${server}\0${tool}`;

/** What becomes of the tool, as the person has chosen or as the configuration says. */
export const exposureNow = (world: Pick<World, "chosen">, server: string, row: ToolRow): ToolExposure =>
  world.chosen.get(chosenKey(server, row.key)) ?? row.exposure;
